"""Where programs run: backends and targets, the machine's environment, what disturbs it, the user's data."""
