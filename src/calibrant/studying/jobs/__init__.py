"""Kinds of work: one file a kind, with `run` and `entries`; the file name is the kind."""
