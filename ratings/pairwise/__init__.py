"""Ratings from pairs: Bradley-Terry with solvers, errors and covariates, ties, online ratings, win rates, ballots."""
