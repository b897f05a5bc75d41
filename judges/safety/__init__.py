"""Texts of models as data: made harmless in a prompt, and searched for instructions to the judge."""
