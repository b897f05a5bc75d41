"""Experimental design: information, interval forecasts, stopping, placing a model."""
