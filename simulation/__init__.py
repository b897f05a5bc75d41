"""Simulated judges without a network: recorded judges as parameters, and a server that answers for them."""
