"""The command line: one file a verb, which holds its options and what it does."""
