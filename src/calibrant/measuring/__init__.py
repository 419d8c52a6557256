"""Measures applied: values with intervals, comparisons, gates, streams, and the columns of the benchmark study."""
