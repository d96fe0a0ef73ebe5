"""Captures and texts of programs become tables, without jax."""
