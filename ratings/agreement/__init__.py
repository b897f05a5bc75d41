"""Agreement beyond chance: of judges with each other, with themselves and with people."""
