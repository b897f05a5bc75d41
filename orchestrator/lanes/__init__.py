"""Lanes: one provider account's door each, with its limits, its retries and its workers."""
