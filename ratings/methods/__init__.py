"""Rating methods by name: what each needs, its options and its results."""
