"""Run whole studies: a plan becomes units, units become rows, rows become tables, claims and a page."""
