"""The instructions of a pickle, one after another, and which of them hold nothing but data."""

import codecs
import io
import pickletools
from collections.abc import Iterator
from typing import Any

VALUES = {
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
    *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
}
CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
IGNORED = {"PROTO", "FRAME", "READONLY_BUFFER"}
PUTS, GETS = {"PUT", "BINPUT", "LONG_BINPUT"}, {"GET", "BINGET", "LONG_BINGET"}
TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
EMPTY: dict[str, Any] = {"EMPTY_LIST": list, "EMPTY_DICT": dict, "EMPTY_SET": set}
OPERATIONS = {operation.code: operation for operation in pickletools.opcodes}


def instructions(content: bytes) -> Iterator[tuple[str, Any]]:
    """Name and value of each, up to the end of the pickle."""
    stream = io.BytesIO(content)
    while (code := stream.read(1)) != b".":
        operation = OPERATIONS.get(code.decode("latin-1"))
        if operation is None:
            raise ValueError("a pickle that is cut short" if code == b"" else f"no instruction {code!r}")
        if operation.name == "STRING":  # pickletools takes it for ASCII; Python 2 wrote the bytes of arrays so
            quoted = pickletools.read_stringnl(stream, decode=False)
            yield operation.name, codecs.escape_decode(quoted)[0].decode("latin-1")
        else:
            yield operation.name, operation.arg.reader(stream) if operation.arg else None
