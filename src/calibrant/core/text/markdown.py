"""Names inside Markdown."""


def escape(text: str) -> str:
    """Escape a name so that it starts no tag, link, image or new table cell.

    >>> print(escape("a | <b> [c](d)"))
    a \\| &lt;b&gt; \\[c\\](d)
    """
    text = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for character in "\\|[]":  # the backslash first: one in a name would undo the next
        text = text.replace(character, f"\\{character}")
    return text
