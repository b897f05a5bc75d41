"""Judges without a network: recorded judges as parameters, and a server that speaks for them."""
