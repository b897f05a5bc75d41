"""Agreement: chance-corrected agreement between judges, agreement with a reference, and calibration."""
