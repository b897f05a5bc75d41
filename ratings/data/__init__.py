"""Verdicts, votes and ballots as arrays, and what every method does to them first."""
