"""Reports for readers: boards made of ratings and judges' figures."""
