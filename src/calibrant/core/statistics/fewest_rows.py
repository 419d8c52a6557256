"""The number of rows that an interval needs."""

FEWEST_ROWS = 10  # independent rows, or clusters: below that an interval promises more than it holds


def too_few_rows(rows: float, *, clusters: bool = False) -> str | None:
    """Why there is no interval for so few independent rows (or clusters); None where there are enough.

    Rows of unequal weight count by Kish's formula, see `effective_rows`.

    >>> too_few_rows(2), too_few_rows(10)
    ('too few rows for an interval: 2, at least 10 are needed', None)
    """
    if rows >= FEWEST_ROWS - 1e-9:
        return None
    unit = "clusters" if clusters else "rows"
    return f"too few {unit} for an interval: {rows:.3g}, at least {FEWEST_ROWS} are needed"
