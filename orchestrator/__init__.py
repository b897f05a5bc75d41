"""Planning, paying and asking: the only home of concurrency."""
