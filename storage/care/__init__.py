"""Whole stores: checked, rewritten, copied, joined outside a campaign."""
