"""Rating methods by name: what each needs, takes and gives."""
