"""Judge protocols: a folder for each, with its prompts beside it."""
