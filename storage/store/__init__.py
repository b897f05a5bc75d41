"""Opening a store, its identity, its one writer and what becomes of it after a crash."""
