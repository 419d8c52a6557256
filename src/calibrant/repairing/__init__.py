"""Calibrators applied: fit one, choose one, judge it, and ship the map."""
