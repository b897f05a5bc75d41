"""What people see on a terminal: all that imports rich."""
