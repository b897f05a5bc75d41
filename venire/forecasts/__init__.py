"""What a plan's money buys, before it is spent."""
