"""jaxmeter's harness: declare workloads, measure them, record what was measured.

These names are all that a suite needs. Importing them imports no jax.
"""

from harness.declare.implementation import Peer, Skip
from harness.declare.levels import DeclarationError, itemsize, sizes
from harness.declare.workload import Workload, no_reference, workload
from harness.machine.data import DataSource, data_folder
from harness.notebook import measure
from harness.record import Cost, Figure, Published
from harness.version import __version__

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
