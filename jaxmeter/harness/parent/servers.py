"""The servers of a run: one for each platform with an environment of its own, and an earlier run's."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from jaxmeter.harness.machine.environment import usable_cores
from jaxmeter.harness.machine.platforms import Platform, make_process_environment
from jaxmeter.harness.parent.against import Checkout, check_code
from jaxmeter.harness.parent.arms import ArmServer, describe_own_environment
from jaxmeter.harness.parent.fork_client import ForkServer
from jaxmeter.harness.parent.prepare_run import make_scratch
from jaxmeter.harness.parent.written import Warnings
from jaxmeter.harness.record import Manifest, OtherEnvironment, PlannedCase, ProcessWarning


class Servers:
    """Starts a platform's server when it is first asked for. Made by `start_servers`, which ends them.

    Attributes:
      scratch: A private folder, which is gone with them.
    """

    def __init__(
        self,
        stack: ExitStack,
        scratch: Path,
        data: str | None,
        suites: tuple[str, ...],
        lock_step: OtherEnvironment | None,
        cores: int | None,
        checkout: Checkout | None = None,
    ) -> None:
        self._stack, self.scratch, self._data, self._suites = stack, scratch, data, suites
        self._lock_step, self._checkout = lock_step, checkout
        self._cores = cores or usable_cores()
        self._running: dict[frozenset[tuple[str, str]], ForkServer] = {}
        self._arms: dict[frozenset[tuple[str, str]], tuple[ArmServer, ...]] = {}

    def of(self, platform: Platform) -> ForkServer:
        """Return the platform's server; platforms with equal environments share one."""
        variables = self._make_variables(platform)
        key = frozenset(variables.items())
        if key not in self._running:
            scratch = self.scratch / f"server{len(self._running)}"
            self._running[key] = self._stack.enter_context(ForkServer(variables, scratch, self._suites))
        return self._running[key]

    def arms_of(self, platform: Platform, index: int = 0) -> tuple[str, str] | None:
        """Return the sockets of the earlier run's environment and of today's; None for a run without an earlier one.

        Both servers are restarted for each round. An interpreter randomises a program's place in memory and its hashes
        when it starts, which changes the time of some calls by several per cent.

        Args:
          index: The round.
        """
        if self._lock_step is None:
            return None
        variables = self._make_variables(platform)
        key = frozenset(variables.items())
        if key not in self._arms:
            today = describe_own_environment(variables)
            self._arms[key] = tuple(
                self._stack.enter_context(ArmServer(environment, variables, self._suites, checkout))
                for environment, checkout in ((self._lock_step, self._checkout), (today, None))
            )
        for arm in self._arms[key]:  # both import jax at the same time, before anything is measured
            arm.start(index)
        before, now = (arm.reach(index) for arm in self._arms[key])
        return before, now

    def check_code(self, platform: Platform, cases: Sequence[PlannedCase], before: Manifest) -> None:
        """Check that the earlier run's checkout has the code that this run measured of some cases.

        Args:
          cases: With the variants that run there.
          before: Of the earlier run.
        Raises:
          UsageError: It has not, or what is imported there is not its own.
        """
        if self._checkout is None or self.arms_of(platform) is None:
            return
        replayed = [case for case in cases if any(item.replays is not None for item in case.variants)]
        earlier, _ = self._arms[frozenset(self._make_variables(platform).items())]
        check_code(self._checkout, replayed, earlier.describe_code(0, replayed, platform), before)

    def list_warnings(self) -> tuple[ProcessWarning, ...]:
        """List what libraries warned of in all processes so far."""
        warnings = Warnings()
        for server in self._running.values():
            warnings.join(server.warnings)
        return warnings.list_all()

    def _make_variables(self, platform: Platform) -> dict[str, str]:
        variables = make_process_environment(platform, os.environ, allowed_cores=self._cores, data=self._data)
        if self._lock_step is not None and platform.preallocates_by is not None:
            # Its processes share a device's memory, whatever the user has set.
            variables[platform.preallocates_by] = "false"
        return variables


@contextmanager
def start_servers(
    parent: Path,
    data: str | None = None,
    suites: tuple[str, ...] = (),
    lock_step: OtherEnvironment | None = None,
    cores: int | None = None,
    checkout: Checkout | None = None,
) -> Iterator[Servers]:
    """Yield the fork servers, and end them when the context ends.

    Args:
      parent: Folder in which the servers' private folder is made.
      data: The folder that suites may read.
      suites: Suites that are imported only once, for many processes.
      lock_step: The environment that takes turns with the run's environment.
      cores: Number of cores that each process uses, also for the thread counts of libraries; all by default.
      checkout: Where the earlier run's code comes from, if not from the suites of today.
    """
    with make_scratch(parent) as scratch, ExitStack() as stack:
        yield Servers(stack, scratch, data, suites, lock_step, cores, checkout)
