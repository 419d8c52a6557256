"""Predictions: a frozen value of scores and labels, with its tasks, validation and data of rows."""

from calibrant.core.predictions.predictions import Predictions

__all__ = ["Predictions"]
