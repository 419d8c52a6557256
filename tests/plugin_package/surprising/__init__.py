"""A package with an entry of every catalogue, as somebody else would write it."""
