"""The report of a board: one document of plain values, which pages/report renders."""
