"""Calibration maps: steps, JSON on disk, the leak check, and the check that every export must pass."""
