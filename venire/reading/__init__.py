"""Replies read again: of a store, or of a table from elsewhere."""
