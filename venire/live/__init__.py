"""Access to a running campaign from other processes: the socket beside its store, and the client."""
