"""calibrant."""
from calibrant.core.predictions import Predictions
