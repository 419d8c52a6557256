"""A report on disk, by suffix: .html, .pdf, .md or .json; whole or not at all."""

import json
from pathlib import Path

from calibrant.core.errors import InputError
from calibrant.core.files import write_whole
from calibrant.reporting.report import Report

SUFFIXES = (".html", ".pdf", ".md", ".json")


def check_out(path: str | Path) -> Path:
    """Check the suffix of a path before anything takes long."""
    file = Path(path)
    if file.suffix.lower() not in SUFFIXES:
        raise InputError(
            str(path),
            expected=f"a name that ends in {', '.join(SUFFIXES)}",
            got=f"'{file.suffix or file.name}'",
            fix="give the report one of these suffixes",
        )
    if file.is_dir():
        raise InputError(str(path), expected="a file name", got="a folder", fix="name a file inside it")
    if file.suffix.lower() == ".pdf":
        from calibrant.reporting.pdf import find_browser

        find_browser()
    return file


def save(r: Report, path: str | Path) -> None:
    file = check_out(path)
    content = _content(r, file.suffix.lower())
    write_whole(file, lambda stream: stream.write(content))


def _content(r: Report, suffix: str) -> bytes:
    if suffix == ".json":
        return (json.dumps(r.to_dict(), indent=2, allow_nan=False) + "\n").encode()
    if suffix == ".md":
        from calibrant.reporting.markdown import markdown

        return markdown(r).encode()
    from calibrant.reporting.page import page

    if suffix == ".html":
        return page(r).encode()
    from calibrant.reporting.pdf import print_page

    return print_page(page(r))
