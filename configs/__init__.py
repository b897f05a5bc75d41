"""What a user writes: the campaign file, a template to start from and ready campaigns."""
