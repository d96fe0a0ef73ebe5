"""jaxmeter's harness: declare workloads, measure them, record what was measured.

These names are all that a suite needs. Importing them imports no jax.
"""

from harness.data import DataSource, data_folder
from harness.implementation import Peer, Skip
from harness.notebook import measure
from harness.params import DeclarationError, itemsize, sizes
from harness.record import Cost, Figure, Published
from harness.version import __version__
from harness.workload import Workload, no_reference, workload

__all__ = [
    "Cost",
    "DataSource",
    "DeclarationError",
    "Figure",
    "Peer",
    "Published",
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
