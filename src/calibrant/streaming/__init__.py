"""Measures of streams: sums of fixed size, merged, keyed by segment, saved."""
