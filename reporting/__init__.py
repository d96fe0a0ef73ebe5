"""What recorded runs mean: loads run folders, builds one view of them, and renders it. Runs without JAX."""

import harness.record  # noqa: F401  first: from there on Ctrl-C ends without words, see harness/interruption.py

from .frame import COLUMNS, load_frame

__all__ = ["COLUMNS", "load_frame"]
