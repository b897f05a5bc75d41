"""Agreement: chance-corrected between judges, with a reference, and calibration."""
