"""Measure how often intervals hold the truth and write the table of docs/intervals.md: python tools/coverage_table.py

With names of measures, only these are measured and the others stay: python tools/coverage_table.py slope atb.
Every cell is written as soon as it is measured, so a run that is stopped has not been for nothing.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from coverage_study import BEGIN, END, KINDS, MISSING, PAGE, SETS, SIZES, SPECS, coverage, read_table


def main(names: list[str]) -> None:
    chosen = {spec: SPECS[spec] for spec in names or SPECS}
    for kind in KINDS:
        for n in SIZES:
            shares = coverage(tuple(chosen.values()), kind, n, SETS)
            table = read_table()
            for spec, m in chosen.items():
                table.setdefault(spec, dict.fromkeys(((kind, n) for kind in KINDS for n in SIZES), MISSING))
                table[spec][kind, n] = f"{shares[m]:.2f}"
            write_table({spec: table[spec] for spec in sorted(SPECS) if spec in table})


def write_table(table: dict[str, dict[tuple[str, int], str]]) -> None:
    head = ["measure", *KINDS, "all"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for spec, row in table.items():
        cells = [" ".join(row[kind, n] for n in SIZES) for kind in KINDS]
        shares = [float(share) for share in row.values() if share != MISSING]
        lines.append(f"| `{spec}` | {' | '.join(cells)} | {min(shares):.2f} to {max(shares):.2f} |")
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.with_suffix(".new").write_text(
        before + BEGIN + "\n" + "\n".join(lines) + "\n\n" + END + rest.partition(END)[2]
    )
    PAGE.with_suffix(".new").replace(PAGE)


if __name__ == "__main__":
    main(sys.argv[1:])
