"""What is computed from a record: inside a process while measuring, across processes on reading. No jax."""
