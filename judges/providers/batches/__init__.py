"""Batch interfaces of providers: many requests in one submission, answered within hours and at a lower price."""
