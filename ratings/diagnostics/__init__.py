"""Diagnostics of ratings: coverage, transitivity, fit, influence, stability, unparsed replies."""
