"""Checks of option values that many entries share."""

from calibrant.core.errors import InputError


def at_least(name: str, value: float, least: float) -> None:
    """Refuse a number below `least`, and an undefined one."""
    if not value >= least:
        raise InputError(name, expected=f"at least {least:g}", got=f"{value:g}", fix=f"give {least:g} or more")


def at_most(name: str, value: float, most: float) -> None:
    """Refuse a number above `most`, and an undefined one."""
    if not value <= most:
        raise InputError(name, expected=f"at most {most:g}", got=f"{value:g}", fix=f"give {most:g} or less")


def share_inside(name: str, value: float) -> None:
    """Refuse what is no share strictly between 0 and 1."""
    if not 0 < value < 1:
        raise InputError(name, expected="a share strictly between 0 and 1", got=f"{value:g}", fix="use 0.95")
