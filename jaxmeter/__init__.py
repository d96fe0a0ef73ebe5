"""jaxmeter profiles JAX programs: declare workloads, measure them, report on what was measured.

The public names load when they are first used: importing this package imports neither jax nor pandas.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from jaxmeter.version import __version__

if TYPE_CHECKING:
    from jaxmeter.harness.declare.declaration import (
        Caching,
        DeclarationError,
        Items,
        Needs,
        Peer,
        Skip,
        State,
        itemsize,
        levels,
        no_reference,
    )
    from jaxmeter.harness.declare.workload import Workload, workload
    from jaxmeter.harness.machine.data import DataSource, data_folder
    from jaxmeter.harness.notebook import measure
    from jaxmeter.harness.notebook.device_time import device_time
    from jaxmeter.harness.record import Answer, Cost, Figure, Published, Reported
    from jaxmeter.harness.traces.reading import read_trace
    from jaxmeter.reporting.frame import load_frame

__all__ = [
    "Answer",
    "Caching",
    "Cost",
    "DataSource",
    "DeclarationError",
    "Figure",
    "Items",
    "Needs",
    "Peer",
    "Published",
    "Reported",
    "Skip",
    "State",
    "Workload",
    "__version__",
    "data_folder",
    "device_time",
    "itemsize",
    "levels",
    "load_frame",
    "measure",
    "no_reference",
    "read_trace",
    "workload",
]

_MODULES = {
    **dict.fromkeys(
        (
            "Caching",
            "DeclarationError",
            "Items",
            "Needs",
            "Peer",
            "Skip",
            "State",
            "itemsize",
            "levels",
            "no_reference",
        ),
        "harness.declare.declaration",
    ),
    **dict.fromkeys(("Workload", "workload"), "harness.declare.workload"),
    **dict.fromkeys(("DataSource", "data_folder"), "harness.machine.data"),
    **dict.fromkeys(("Answer", "Cost", "Figure", "Published", "Reported"), "harness.record"),
    "measure": "harness.notebook",
    "device_time": "harness.notebook.device_time",
    "read_trace": "harness.traces.reading",
    "load_frame": "reporting.frame",
}
"""Where each public name is defined. Type checkers read the imports above; a test holds that both agree."""


def __getattr__(name: str) -> Any:
    """Return a public name, and import the module that defines it."""
    if name not in _MODULES:
        raise AttributeError(f"module 'jaxmeter' has no attribute '{name}'; it has {', '.join(__all__)}")
    value = getattr(import_module(f"jaxmeter.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
