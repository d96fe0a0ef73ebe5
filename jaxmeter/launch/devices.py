"""The questions that the launcher asks about a backend's devices; `nvidia` and `tpu` answer them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from jaxmeter.launch.engines import Ask, Engine
from jaxmeter.launch.host import Host
from jaxmeter.launch.observations import Observation, Problem
from jaxmeter.launch.request import Request

WITHOUT_DEVICE = "without the device, measure on this machine's processor: --backend cpu"


@dataclass(frozen=True)
class Devices:
    """One kind of device. A kind with only a name exists on every machine, and every container can use it.

    Args:
      name: Its name in the doctor's table and in the list of nox sessions.
      describe: Describes the machine's devices of this kind, in a phrase; None if there is nothing to look for.
      find_problems: Finds problems that prevent its use, most fundamental first. The engine is None for a local run.
      find_warnings: Finds what will be missing from the results, though times are right. The second argument is whether
        the run has the rights of root.
      warnings_row: Name of the warnings in the doctor's table.
      find_other_use: Makes rows that show whether something else uses it now.
      other_use_row: Name of these rows in the doctor's table.
      container_arguments: Options that give it to a container.
      container_variables: Environment variables that go with these options.
    """

    name: str
    describe: Callable[[Host], str] | None = None
    find_problems: Callable[[Request, Host, Engine | None], list[Problem]] = lambda request, host, engine: []
    find_warnings: Callable[[Host, bool], list[Problem]] = lambda host, is_root: []
    warnings_row: str = ""
    find_other_use: Callable[[Ask], list[Observation]] = lambda ask: []
    other_use_row: str = ""
    container_arguments: Callable[[Engine, Request, Host], tuple[str, ...]] = lambda engine, request, host: ()
    container_variables: Mapping[str, str] = field(default_factory=dict)
