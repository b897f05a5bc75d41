"""What judges are like: consistency, discrimination, position, length, self-preference, drift."""
