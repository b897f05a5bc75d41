"""Uncertainty of ratings: bootstrap, contrasts, ranks, intervals, and anytime-valid intervals."""
