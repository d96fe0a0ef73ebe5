"""A nightly run: what to compare it with, what to confirm of it, and the verdict that a store keeps next to it."""
