"""`harness.measure` for notebooks: a user's own callable, called as it is, measured inside the user's process."""

from harness.notebook.measurement import Measurement
from harness.notebook.measuring import IN_PROCESS, Measure, measure

__all__ = ["IN_PROCESS", "Measure", "Measurement", "measure"]
