"""Ratings from pairs: Bradley-Terry with its solvers, covariances and covariates, ties, online ratings, win rates."""
