"""jaxmeter's harness: declare workloads, measure them, record what was measured.

These names are all that a suite needs. Importing them imports no jax.
"""

from harness import interruption  # noqa: F401  first, since the others take a second
from harness.declare.declaration import Caching, Needs, Peer, Skip, State, no_reference
from harness.declare.levels import DeclarationError, itemsize, levels
from harness.declare.workload import Workload, workload
from harness.machine.data import DataSource, data_folder
from harness.notebook import measure
from harness.record import Answer, Cost, Figure, Published
from harness.version import __version__

__all__ = [
    "Answer",
    "Caching",
    "Cost",
    "DataSource",
    "DeclarationError",
    "Figure",
    "Needs",
    "Peer",
    "Published",
    "Skip",
    "State",
    "Workload",
    "__version__",
    "data_folder",
    "itemsize",
    "levels",
    "measure",
    "no_reference",
    "workload",
]
