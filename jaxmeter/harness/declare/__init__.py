"""What a suite says: workloads, implementations, levels of params, and whether that fits together."""
