"""The demo's own data: sixteen instructions, six contestants of planted strength, and their campaign."""
