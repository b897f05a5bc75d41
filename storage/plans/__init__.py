"""Campaigns and their plans in a store: what is planned, settled and left to ask."""
