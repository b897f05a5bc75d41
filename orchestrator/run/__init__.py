"""A campaign while it runs: trials asked to their end, recorded, and sent as events."""
