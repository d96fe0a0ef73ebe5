"""`jaxmeter.measure` for notebooks: a user's own callable, called as it is, measured inside the user's process."""

from jaxmeter.harness.notebook.measurement import IN_PROCESS, Measurement
from jaxmeter.harness.notebook.one_process import Measure, measure

__all__ = ["IN_PROCESS", "Measure", "Measurement", "measure"]
