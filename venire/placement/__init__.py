"""Placement of a new model on a known scale."""
