"""`python -m calibrant` is `calibrant`, which Ctrl-C ends quietly from its first moment on."""

import gc
import os
import signal


def main() -> None:
    """The command line, loaded here: an interrupted import would end in a traceback, and nothing is lost by then."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    gc.disable()  # imports leave nothing to collect, and what they made is not looked through again
    from calibrant.cli import main as run

    gc.freeze()
    gc.enable()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


if __name__ == "__main__":
    main()
