"""Executes the plan, watches processes, writes the record. No jax."""
