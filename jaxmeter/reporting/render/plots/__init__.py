"""Figures by matplotlib: a file for each kind, all on sheets, marks and rows of one look."""
