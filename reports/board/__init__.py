"""Boards: verdicts read from a store or from files, rated, with what a reader needs to doubt the ratings."""
