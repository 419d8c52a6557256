"""Measures applied: values with intervals, comparisons, gates, tests, the benchmark study's columns."""
