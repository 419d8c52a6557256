"""A Hugging Face Space: the app for everybody, without a token."""

import os

from calibrant.app.serve import Settings, serve

MAX_UPLOAD = 50  # MB


def main() -> None:
    host, port = os.environ.get("GRADIO_SERVER_NAME", "0.0.0.0"), int(os.environ.get("GRADIO_SERVER_PORT", "7860"))
    settings = Settings(host=host, port=port, max_upload=MAX_UPLOAD, public=True)
    serve(settings, lambda address: print(f"calibrant is at {address}", flush=True))


if __name__ == "__main__":
    main()
