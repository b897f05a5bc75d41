"""A new model on a known scale."""
