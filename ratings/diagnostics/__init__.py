"""Doubts about ratings: coverage, transitivity, fit, influence, volatility, what was not read."""
