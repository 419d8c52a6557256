"""Columns that several questions ask for, and their names in pictures."""

BIN_COUNTS = (5, 10, 15, 20, 25, 50, 100, 200, 500)
SEVEN = ("ECE_15", "ECE_em_15", "cwCE_15", "KSCE", "KDECE", "MMCE", "cwCE_em_15")  # measures that are compared
ECE = "pre_ECE_15"


def short(column: str) -> str:
    """The name of a column without the state and the usual number of bins.

    >>> short("pre_cwCE_em_15"), short("post_ECE_100"), short("corrupt_frost")
    ('cwCE_em', 'ECE_100', 'frost')
    """
    for word in ("pre_", "post_", "corrupt_"):
        column = column.removeprefix(word)
    return column.removesuffix("_15")
