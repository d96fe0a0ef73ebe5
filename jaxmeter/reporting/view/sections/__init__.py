"""The page's sections, one topic each: from cases to a question, its answer, and the tables and plots behind it."""
