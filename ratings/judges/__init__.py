"""Properties of judges: consistency, discrimination, position bias, length bias, drift."""
