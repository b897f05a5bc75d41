"""Terminal output: all modules that import rich."""
