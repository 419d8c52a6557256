"""Kinds of work: one file a kind, with `VERSION` and `run`; the file name is the kind."""
