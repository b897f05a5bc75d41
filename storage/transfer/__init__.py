"""Data on its way into a store, out of it, and between stores."""
