"""From a campaign to the trials of its next round."""
