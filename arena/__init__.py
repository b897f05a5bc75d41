"""The nouns of the field: records, keys, clocks and errors. Standard library only."""
