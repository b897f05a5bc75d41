"""What a run leaves: rows for the store, events for whoever watches, and how it ended."""
