"""What there is to doubt of a board, by finding."""
