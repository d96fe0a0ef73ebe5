"""What a run sets out to do: cases, settings, processes and their order, messages to processes. No jax."""
