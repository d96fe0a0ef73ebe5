"""What of a record is followed when a run goes on, or another runs next to it: names, and never a path.

A run may come from somebody else. A path in it could name code in the run itself, so a person names paths.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from jaxmeter.harness.declare.catalogue import DEFAULT_SUITES
from jaxmeter.harness.machine.environment import make_paths_private
from jaxmeter.harness.parent.prepare_run import UsageError
from jaxmeter.harness.record import Manifest, OtherEnvironment, RecordError, RunFolder, Settings, read_manifest

_OWN_SUITE = re.compile(rf"{re.escape(DEFAULT_SUITES)}(\.[A-Za-z_][A-Za-z0-9_]*)*")


def choose_suites(given: Sequence[str], recorded: Sequence[str], run: Path, option: str) -> tuple[str, ...]:
    """Return the suites to import: those that were given, else the recorded ones where they are jaxmeter's own.

    Args:
      run: Whose record it is.
      option: By which the run was named.
    Raises:
      UsageError: The record names a path or another package, or a path was given that lies inside the run.
    """
    if given:
        for name in given:
            _refuse_inside(name, run)
        return tuple(given)
    foreign = next((name for name in recorded if not is_own_suite(name)), None)
    if foreign is not None:
        raise UsageError(
            f"{option} {run}: its suites are '{foreign}', and no code is imported from where a record says; "
            "name the suites yourself: --suites PATH"
        )
    return tuple(recorded)


def is_own_suite(name: str) -> bool:
    """Return whether a suite is a module of jaxmeter's own."""
    return _OWN_SUITE.fullmatch(name) is not None


def _refuse_inside(name: str, run: Path) -> None:
    path = Path(name).expanduser()
    if path.exists() and path.resolve().is_relative_to(run.resolve()):
        raise UsageError(
            f"--suites {name}: lies inside the run {run}, which may come from another person; read the file, then copy "
            "it to a folder of your own"
        )


def choose_data(given: Path | None, recorded: str | None, run: Path, option: str) -> Path | None:
    """Return the folder of data sets that was given.

    Raises:
      UsageError: None was, and the run had one.
    """
    if given is None and recorded is not None:
        raise UsageError(
            f"{option} {run}: it read data sets from '{recorded}', and no folder is read that a record names; "
            "name it yourself: --data DIR"
        )
    return given


def choose_lock_step(
    given: str | None, manifest: Manifest, run: Path, checkout: Path | None = None
) -> OtherEnvironment | None:
    """Return the other environment of a run that goes on, by the interpreter and the checkout that were given.

    Raises:
      UsageError: One of the two has an environment or a checkout, and the other has none.
    """
    recorded = manifest.settings.lock_step
    if checkout is not None and (recorded is None or recorded.checkout is None):
        raise UsageError(f"--baseline-checkout {checkout}: {run} measures one checkout; leave it out")
    if recorded is None and given is None:
        return None
    if recorded is None:
        raise UsageError(f"--lock-step {given}: {run} measures in one environment; leave it out")
    if recorded.checkout is not None:
        if checkout is None:
            raise UsageError(
                f"--resume {run}: it runs in lock-step with the code of run {manifest.against}, and jaxmeter loads no "
                "code from a recorded path; name the checkout of that code: --baseline-checkout DIR"
            )
        return replace(recorded, python=given or sys.executable, checkout=str(checkout))
    if given is None:
        raise UsageError(
            f"--resume {run}: it measures in turns with the environment of run {manifest.against}, and no program is "
            "started that a record names; name its python yourself: --lock-step PYTHON"
        )
    return replace(recorded, python=given)


def check_same_baseline(manifest: Manifest, given: Path | None) -> None:
    """Check that a run that goes on was begun next to the earlier run that is given, if one is.

    Raises:
      UsageError: It was begun next to another or to none, or the earlier run cannot be read.
    """
    if given is None:
        return
    try:
        earlier = read_manifest(RunFolder(given)).run_id
    except RecordError as error:
        raise UsageError(f"--against: {error}; give the folder of a run, such as results/RUN") from error
    if earlier != manifest.against:
        begun = "no other run" if manifest.against is None else f"run {manifest.against}"
        raise UsageError(f"--against {given}: run {manifest.run_id} was begun next to {begun}; leave it out")


def replace_paths(
    settings: Settings, suites: tuple[str, ...], data: Path | None, lock_step: OtherEnvironment | None
) -> Settings:
    """Return the settings of a run that goes on with the paths that were given, as a record may hold them."""
    return replace(
        settings,
        suites=tuple(map(make_paths_private, suites)),
        data=None if data is None else make_paths_private(str(data.absolute())),
        lock_step=None if lock_step is None else make_environment_private(lock_step),
    )


def make_environment_private(environment: OtherEnvironment) -> OtherEnvironment:
    """Return an environment with its paths as a record may hold them."""
    checkout = None if environment.checkout is None else make_paths_private(environment.checkout)
    return replace(environment, python=make_paths_private(environment.python), checkout=checkout)
