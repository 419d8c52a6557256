"""Image classifiers of the Hugging Face hub or of a folder."""

from pathlib import Path

from calibrant.core.errors import InputError, unknown_name
from calibrant.models._base import Network, Shape
from calibrant.models._call import read
from calibrant.models._external import first_line, wrap


def load(spec: str, shape: Shape) -> Network:
    """The image classifier of `NAME_OR_PATH?revision=...&head=...`, with a new head where the classes differ."""
    name, _, query = spec.partition("?")
    options = read(query, spec)
    if unknown := set(options) - {"head", "revision"}:
        raise unknown_name(f"option of hf:{name}", min(unknown), ["head", "revision"])
    expected = "an image classifier of the Hugging Face hub, or a folder with one"
    if not name or (name.startswith((".", "/", "~")) and not Path(name).expanduser().is_dir()):
        raise InputError(f"hf:{name}", expected=expected, got="no such folder", fix="check the path")
    try:
        from transformers import AutoModelForImageClassification
    except ImportError as error:
        got, fix = "transformers is not installed", "pip install 'calibrant[hub]'"
        raise InputError(f"hf:{name}", expected=expected, got=got, fix=fix) from error
    folder = Path(name).expanduser()
    try:
        network = AutoModelForImageClassification.from_pretrained(
            folder if folder.is_dir() else name,
            revision=options.get("revision", "main"),
            num_labels=shape.classes,
            ignore_mismatched_sizes=True,
            use_safetensors=True,  # a pickle could run any code
            trust_remote_code=False,  # left out, transformers asks on the terminal whether to run the repository's own
        )
    except Exception as error:
        fix = "check the name and the network, or save the weights as model.safetensors"
        raise InputError(f"hf:{name}", expected=expected, got=first_line(error), fix=fix) from error
    return wrap(network, shape, f"hf:{name}", options.get("head"))
