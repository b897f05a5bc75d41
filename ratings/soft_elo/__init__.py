"""Soft-Elo: calibrated probabilities, conformal intervals, and the scale of human ratings."""
