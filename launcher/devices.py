"""The questions that the launcher asks about a backend's devices; `nvidia` and `tpu` answer them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from launcher.engines import Ask, Engine
from launcher.findings import Finding, Problem
from launcher.host import Host
from launcher.request import Request

WITHOUT_DEVICE = "without the device, measure on this machine's processor: nox -s cpu"


@dataclass(frozen=True)
class Devices:
    """One kind of device. With a name alone it is one that every machine has and every container can use.

    Args:
      name: What is measured on, as the doctor's table and the list of nox sessions have it.
      describe: What of it a machine has, in a phrase; None where there is nothing to look for.
      find_problems: What stands in the way of using it, most fundamental first. The engine is None for a local run.
      find_warnings: What will be missing from the results, though times are right. It is told whether the run has the
        rights of root.
      warnings_row: What the doctor's table calls the warnings.
      find_other_use: Rows that tell whether something else uses it now.
      other_use_row: What the doctor's table calls that.
      container_arguments: Options that hand it to a container.
      container_variables: Environment variables that go with these options.
    """

    name: str
    describe: Callable[[Host], str] | None = None
    find_problems: Callable[[Request, Host, Engine | None], list[Problem]] = lambda request, host, engine: []
    find_warnings: Callable[[Host, bool], list[Problem]] = lambda host, is_root: []
    warnings_row: str = ""
    find_other_use: Callable[[Ask], list[Finding]] = lambda ask: []
    other_use_row: str = ""
    container_arguments: Callable[[Engine, Request, Host], tuple[str, ...]] = lambda engine, request, host: ()
    container_variables: Mapping[str, str] = field(default_factory=dict)
