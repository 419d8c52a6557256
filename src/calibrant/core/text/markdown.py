"""Names inside Markdown."""


def escape(text: str) -> str:
    """A name cannot start a tag, a link, an image or a new cell.

    >>> print(escape("a | <b> [c](d)"))
    a \\| &lt;b&gt; \\[c\\](d)
    """
    text = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for character in "\\|[]":  # the backslash first: one in a name would undo the next
        text = text.replace(character, f"\\{character}")
    return text
