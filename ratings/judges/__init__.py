"""What judges are like: consistency, discrimination, position bias, length bias, drift."""
