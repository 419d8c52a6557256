"""Sorted calibration curves, the softmax pass, ranking and kernel sums: the arrays that measures read."""
