"""A scheduled run: what to compare it with, what to confirm of it, and the verdict that stands beside it in a store."""
