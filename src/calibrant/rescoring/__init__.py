"""Rescore a run: open it, choose images, fit a method of `rescorers`, give new predictions."""
