"""Plain values for JSON, and JSON that is safe inside the script of a page."""

import dataclasses
import json
from typing import Any

import numpy as np

NOT_IN_JSON = {"json": False}  # metadata of a field that `plain` leaves out


def plain(value: Any) -> Any:
    """Numbers, words, lists and dicts only; undefined numbers are None, for JSON has no NaN.

    >>> plain({"ece": float("nan"), "bins": (1, np.int64(2))})
    {'ece': None, 'bins': [1, 2]}
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        shown = [f.name for f in dataclasses.fields(value) if f.metadata.get("json", True)]
        return {name: plain(getattr(value, name)) for name in shown}
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()  # with its NaN, if it has one: an array of parameters must not lose numbers quietly
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value


def in_script(value: Any) -> str:
    """JSON that cannot end the script it stands in, whatever names it holds.

    >>> in_script({"name": "</script>"})
    '{"name":"\\\\u003c/script\\\\u003e"}'
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
