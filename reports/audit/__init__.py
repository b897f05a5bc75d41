"""The audit of a board: reasons to doubt it, one finding for each check."""
