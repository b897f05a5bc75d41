"""Documents of plain values for reports and pages, and the sections of a report."""
