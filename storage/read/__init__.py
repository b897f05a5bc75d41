"""What is read from a store: for ratings, reports and people."""
