"""Soft-Elo: calibrated probabilities, conformal intervals, and a scale of people."""
