"""A run that others look at: the socket beside a store, and its client."""
