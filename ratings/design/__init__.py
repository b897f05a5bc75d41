"""What to ask next: information, expected widths, stopping, placing a model."""
