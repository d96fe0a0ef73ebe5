"""What recorded runs mean: loads run folders, builds one view of them, and renders it. Runs without JAX."""

from .frame import COLUMNS, load_frame

__all__ = ["COLUMNS", "load_frame"]
