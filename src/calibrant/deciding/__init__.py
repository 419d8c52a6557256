"""Scores into actions: thresholds by cost, answers with a guarantee, what they cost, and the decision as a file."""
