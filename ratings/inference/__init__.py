"""How sure ratings are: bootstrap, contrasts, ranks, intervals, and intervals that hold at any time."""
