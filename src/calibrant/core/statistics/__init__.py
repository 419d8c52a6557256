"""Bootstrap, noise of calibration errors, intervals, regressions, exact temperature, cross-fitting."""
