"""Doubts about ratings: coverage, transitivity, fit, influence, stability, unparsed replies."""
