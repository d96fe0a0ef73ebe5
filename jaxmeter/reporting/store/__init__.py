"""Runs in a bucket: they are pushed whole, and read through a local cache."""
