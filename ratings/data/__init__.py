"""Verdicts, votes and ballots as arrays, and the preparation that all methods share."""
