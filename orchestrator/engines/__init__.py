"""Where the trials of a campaign are asked: in this process, or by actors of a Ray cluster."""
