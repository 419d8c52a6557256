"""Query a table in SQL, read-only: nothing is written, and no other file is read."""

import re
from typing import TYPE_CHECKING

from calibrant.core.errors import InputError, unknown_name

if TYPE_CHECKING:
    import polars as pl

COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
READS = re.compile(r"\b(?:read|scan)_\w*", re.IGNORECASE)  # table functions; looked for inside quotes as well
SELECTED = re.compile(  # a plain query: what it selects stands between the first two words
    r"(?P<head>select(?:\s+distinct)?)\s+(?P<items>(?:(?!\b(?:select|from)\b).)*?)\s+(?P<rest>from\b(?!.*\bselect\b).*)",
    re.IGNORECASE | re.DOTALL,
)
ALIAS = re.compile(r"\bas\s+\w+\s*$|\)\s*\w+\s*$", re.IGNORECASE)  # `sum(x) as total`, `sum(x) total`
LONGEST = 100_000  # characters
LOOKS = ("select", "with")


def query(table: "pl.DataFrame", sql: str, *, name: str = "nas") -> "pl.DataFrame":
    """Run a SELECT on the table, which is called `name` in it.

    >>> import polars as pl
    >>> query(pl.DataFrame({"a": [1, 2, 3]}), "select sum(a) as total from nas where a > 1").item()
    5
    """
    import polars as pl

    _check(sql, name)
    try:
        with pl.SQLContext({name: table}, eager=True) as context:
            rows = context.execute(_name_columns(sql.strip().rstrip(";")))
    except pl.exceptions.ColumnNotFoundError as error:
        asked = (re.findall(r'"([^"]+)"', str(error)) or [str(error).splitlines()[0]])[0]
        raise unknown_name("column", asked, table.columns, f"one of the {table.width} columns of {name}") from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError, TypeError, OSError) as error:
        reason = str(error).strip().splitlines()[0][:200]
        fix = f'write for instance "select * from {name} limit 5"'
        raise InputError("query", expected="a SELECT that the table can answer", got=reason, fix=fix) from None
    for column, kind in rows.schema.items():
        if not (kind.is_numeric() or kind in (pl.String, pl.Boolean, pl.Null)):
            got, fix = f"{column} ({kind})", "select numbers or text, or cast it: cast(... as text)"
            raise InputError("query", expected="numbers and text in the answer", got=got, fix=fix)
    return rows


def _name_columns(sql: str) -> str:
    """The query with every computed column named by its own text: polars names it after the first column in it.

    >>> _name_columns("select corr(accuracy, ece), arch from nas")
    'select corr(accuracy, ece) as "corr(accuracy, ece)", arch from nas'
    """
    asked = SELECTED.fullmatch(sql)
    if asked is None or '"' in asked["items"] or "'" in asked["items"] or COMMENT.search(sql):
        return sql  # with texts of its own in it, which name themselves by `as`
    items, depth = [""], 0
    for sign in asked["items"]:
        depth += (sign == "(") - (sign == ")")
        if sign == "," and not depth:
            items.append("")
        else:
            items[-1] += sign
    named = [
        f'{item.strip()} as "{item.strip()}"' if "(" in item and not ALIAS.search(item) else item.strip()
        for item in items
    ]
    return f"{asked['head']} {', '.join(named)} {asked['rest']}"


def _check(sql: str, name: str) -> None:
    """Refuse what is not a SELECT, and what could read a file, before anything runs."""
    fix = f'ask the table only: "select ... from {name} where ..."'
    if len(sql) > LONGEST:
        raise InputError("query", expected=f"at most {LONGEST:,} characters", got=f"{len(sql):,}", fix="ask for less")
    if match := READS.search(sql):
        raise InputError("query", expected="no function that reads a file", got=match[0], fix=fix)
    words = re.findall(r"\w+", COMMENT.sub(" ", sql))
    first = words[0] if words else ""
    if first.lower() not in LOOKS:
        raise InputError("query", expected="a SELECT", got=f"'{first}'" if first else "nothing", fix=fix)
