"""Models that judge each other, and self-preference."""
