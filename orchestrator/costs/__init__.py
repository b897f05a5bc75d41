"""What a plan will cost and what it may cost: expected, learned, worst, and the budget."""
