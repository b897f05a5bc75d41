"""What people look at: boards made of ratings and judges' figures."""
