"""jaxmeter's harness: declare workloads, measure them, record what was measured.

These names are all that a suite needs. Importing them imports no jax.
"""

from harness.data import data_folder
from harness.notebook import measure
from harness.record import Cost
from harness.version import __version__
from harness.workload import (
    DeclarationError,
    Peer,
    Skip,
    Workload,
    itemsize,
    no_reference,
    sizes,
    workload,
)

__all__ = [
    "Cost",
    "DeclarationError",
    "Peer",
    "Skip",
    "Workload",
    "__version__",
    "data_folder",
    "itemsize",
    "measure",
    "no_reference",
    "sizes",
    "workload",
]
