"""Sets runs, programs and numbers side by side. Knows no page."""
