"""Repeated simulations of a campaign with simulated judges: the benefit of each design choice."""
