"""What a run sets out to do: cases, settings, launches and their order, messages to processes. No jax."""
