"""Watch a stream: evidence against calibration after every row, by segment, with the state on disk."""
