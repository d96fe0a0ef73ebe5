"""Is a correct program ever called wrong, and is a planted fault ever missed? `python -m benchmarks.correctness`."""
