"""Reports: one page about predictions, and the tables of the terminal."""
