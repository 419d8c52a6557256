"""Decisions from scores: thresholds by cost, guarantees, what they cost, a decision as a file."""
