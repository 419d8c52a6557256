"""Bootstrap, noise of calibration errors, Wilson's interval, regressions, the exact temperature, cross-fitting."""
