"""What the larger nox sessions do, step by step, with a shell that nox provides."""
