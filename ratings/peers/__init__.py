"""Models that judge each other."""
