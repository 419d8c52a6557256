"""Run whole studies: a plan becomes jobs, jobs become rows, rows become tables, claims and a page."""
