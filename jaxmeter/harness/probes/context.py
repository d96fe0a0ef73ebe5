"""The input of a probe: the case of its process with variants prepared on demand; looking at them one by one."""

from __future__ import annotations

import hashlib
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial, update_wrapper
from types import TracebackType
from typing import Any

import jax
import numpy

from jaxmeter.harness.declare.declaration import MIXED, Implementation, NoReference, call_with
from jaxmeter.harness.declare.workload import Workload
from jaxmeter.harness.machine.environment import LONGEST_SEARCHED, describe_error, find_words, make_private
from jaxmeter.harness.machine.jax_internals import describe_missing_name
from jaxmeter.harness.machine.own_fault import (
    UnknownError,
    blame_jaxmeter,
    describe_own_fault,
    is_disk_full,
    is_own_fault,
)
from jaxmeter.harness.machine.platforms import Platform
from jaxmeter.harness.plan.probes import PROBES
from jaxmeter.harness.probes.conditioning import Judge, as_array
from jaxmeter.harness.probes.fit import compare_with_capacity, planned_peak_bytes
from jaxmeter.harness.probes.remote import Address, Arm
from jaxmeter.harness.probes.updates import Olds
from jaxmeter.harness.programs.arguments import INPUT_SEED, RefusedError, as_numpy, choose_static, size_bytes, widest
from jaxmeter.harness.programs.modes import Carried, Clock, How, Prepared, describe_refused_option, prepare_as
from jaxmeter.harness.programs.older_jax import RuntimeFailure
from jaxmeter.harness.programs.program import NoTextError
from jaxmeter.harness.programs.replay import ReplayError, make_replay, read_program
from jaxmeter.harness.programs.traps import find_wide_inputs
from jaxmeter.harness.record import (
    NATIVE,
    CaseFolder,
    Outcome,
    Param,
    PlannedCase,
    PlannedVariant,
    ProcessRecord,
    Settings,
    Status,
    UnreadableError,
)
from jaxmeter.harness.record.files import LARGEST_PROGRAM, read_kept
from jaxmeter.harness.record.settings import is_plain_setting

LARGEST_REMADE = 64 * 2**20
"""Bytes of inputs that are made a second time, which takes some tenths of a second."""

Beat = Callable[[str | None, str], None]
"""Receives the variant and the stage that begins, so that a crash or a hang can be attributed."""


def ignore_beat(variant: str | None, stage: str) -> None:
    """For callers without a watcher."""


@dataclass(frozen=True)
class Findings:
    """What one probe found in one process: an outcome by variant, or raw samples that outcomes are made of later."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    process: ProcessRecord | None = None


@dataclass(frozen=True)
class _Failure:
    """Why a variant cannot be prepared, and the stage that it was in."""

    error: Exception
    traceback: TracebackType | None
    stage: str


@dataclass(frozen=True)
class Unavailable:
    """Why there is nothing to compare with."""

    reason: str


@dataclass
class Context:
    """The case that a process works on.

    Args:
      arguments: The workload's inputs, positional; their shapes if nothing is called.
      folder: The case's folder, in which a probe may keep files; None if it may not.
      capacity_bytes: Memory of one device; None if it is unknown.
      index: Number of this process among those with equal assignments, from 0.
      case: The case as it was planned; None in a notebook.
      settings: The run's settings; None if no probe needs them.
      seed: Seed of random orders.
      cache_state: What the caches hold when a call begins, for the `caching` probe.
      begun_s: `clock` when the process began; None where its length is not counted, as in a notebook.
      wide: What `wide_inputs` is; None where it is found when it is asked for.
      too_large: Why its arguments alone cannot be made here; None if they can.
      arms: Addresses of the processes of two environments that run variants in turns, or None.
      judge_formats: The coarsest format on the way to each output of the program that judges variants; None before it
        is searched.
      drawn: Results of the draws, for all variants; None before they are made: probes/judgement.py.
    """

    workload: Workload
    params: dict[str, Param]
    platform: Platform
    arguments: tuple[Any, ...]
    clock: Clock
    folder: CaseFolder | None
    capacity_bytes: int | None = None
    index: int = 0
    case: PlannedCase | None = None
    settings: Settings | None = None
    seed: int = 0
    cache_state: str = ""
    begun_s: float | None = None
    wide: tuple[str, ...] | None = None
    too_large: str | None = None
    arms: Mapping[Arm, Address] | None = None
    beat: Beat = ignore_beat
    variant: str | None = None
    at: str = "start"
    judge_formats: tuple[str | None, ...] | None = None
    drawn: Any = None
    _last: tuple[str, Prepared | _Failure] | None = field(default=None, repr=False)

    def stage(self, name: str) -> None:
        """Says that a stage of the variant begins."""
        self.at = name
        self.beat(self.variant, name)

    def name(self, variant: str | None, stage: str) -> None:
        """Says which variant is at work, and at what."""
        self.variant = variant
        self.stage(stage)

    def prepare(self, variant: str) -> Prepared:
        """The variant, ready to be called; the same again for the probe that follows, until another is asked for.

        Raises:
          Whatever its code or its compiler raise; the same again for the probe that follows.
        """
        if self._last is None or self._last[0] != variant:
            self._last = None  # what the last one holds is free before this one takes memory
            made: Prepared | _Failure
            try:
                made = self._prepare(variant)
            except Exception as error:  # noqa: BLE001  a suite's code may raise anything
                made = _Failure(error, error.__traceback__, self.at)
            self._last = variant, made
        prepared = self._last[1]
        if isinstance(prepared, _Failure):
            self.at = prepared.stage
            # With its own traceback, else every probe would add to it, and the same failure would read like another.
            raise prepared.error.with_traceback(prepared.traceback)
        return prepared

    def prepare_with(self, variant: str, options: Mapping[str, Param]) -> Prepared:
        """The variant, compiled once more with further options of XLA's.

        Raises:
          Whatever its code or its compiler raise.
        """
        return self._compile(variant, options)

    def find_variant(self, name: str) -> tuple[Implementation, str]:
        """The implementation and mode of a variant; of an A/A control, those of the variant that it is the same as."""
        return self.workload.find_variant(self._find_original(name))

    def find_remote(self, variants: Iterable[str]) -> dict[str, tuple[Arm, str]]:
        """Of these variants those that run in lock-step, in processes of their own: name -> side and name there.

        Today's do too: a process that measures others is not like them.
        """
        remote: dict[str, tuple[Arm, str]] = {}
        for name in variants:
            item = self._find_planned(name)
            if item is not None and item.replays is not None and item.replays.in_lock_step and item.same_as:
                remote[name] = Arm.BEFORE, item.replays.variant
                remote[item.same_as] = Arm.NOW, item.same_as
        return {name: remote[name] for name in variants if name in remote}

    def is_replay(self, variant: str) -> bool:
        """Whether a variant is an earlier run's program, which may compute something else than today's."""
        planned = self._find_planned(variant)
        return planned is not None and planned.replays is not None

    def _find_original(self, name: str) -> str:
        planned = self._find_planned(name)
        return name if planned is None or planned.same_as is None else planned.same_as

    def _find_planned(self, name: str) -> PlannedVariant | None:
        variants = () if self.case is None else self.case.variants
        return next((item for item in variants if item.name == name), None)

    def _read_replay(self, planned: PlannedVariant, function: Callable[..., Any]) -> Callable[..., Any]:
        """The program that an earlier run has kept, as a function that takes and gives what today's does.

        Raises:
          ReplayError: It cannot be run here.
        """
        if self.folder is None or planned.replays is None:
            raise ReplayError("no folder with the kept program")
        try:
            data = read_kept(self.folder.exported(planned.name), LARGEST_PROGRAM)
        except OSError as error:
            raise ReplayError(f"the kept program cannot be read: {error.strerror}") from error
        except UnreadableError as error:
            raise ReplayError(f"the kept program cannot be read: {error}") from error
        if hashlib.sha256(data).hexdigest() != planned.replays.sha256:
            raise ReplayError("the kept program is not what was recorded (another SHA-256)")
        return make_replay(read_program(data), function, self.arguments)

    def _prepare(self, variant: str) -> Prepared:
        return self._compile(variant, {})

    def _compile(self, variant: str, further_options: Mapping[str, Param]) -> Prepared:
        workload = self.workload
        implementation, mode = self.find_variant(variant)
        function = self._fix_params(implementation.function)
        arguments = jax.tree.map(as_numpy, self.arguments) if mode == NATIVE else self.arguments
        donate, options = implementation.donate, implementation.compiler_options
        if (planned := self._find_planned(variant)) is not None and planned.replays is not None:
            function, donate = self._read_replay(planned, function), planned.donates
            options = planned.compiler_options
            if unsafe := [name for name, value in options.items() if not is_plain_setting(name, value)]:
                raise ReplayError(f"the kept program was compiled with {unsafe[0]!r}, which may name a file")
            if unknown := set(donate) - set(workload.arguments):
                raise ReplayError(f"the kept program donates {min(unknown)!r}, which is no longer an argument")
        how = How(
            carry=workload.carried,
            donate=workload.find_positions(donate),
            convert=implementation.convert,
            stream=workload.declaration.stream,
            compiler_options={**options, **further_options},
        )
        return prepare_as(mode, function, arguments, how, self.clock, self.stage)

    def _fix_params(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function with the params that it takes, fixed."""
        fixed = choose_static(function, self.params)
        # With its name, which programs and traces carry.
        return update_wrapper(partial(function, **fixed), function) if fixed else function

    @cached_property
    def judging_variant(self) -> str | None:
        """The variant that others are judged by: the baseline variant, of a peer's the first that is JAX's own.

        None where there is none: another library's rounding says nothing of JAX's.
        """
        planned = () if self.case is None else self.case.variants
        known = [item.name for item in planned if item.skip is None and item.replays is None and item.same_as is None]
        names = known if planned else list(self.workload.variants)
        baseline = self.workload.baseline_variant if self.case is None else self.case.baseline
        for name in sorted(names, key=lambda name: name != baseline):
            implementation, mode = self.find_variant(name)
            if mode != NATIVE and implementation.raises is None:
                return name
        return None

    def find_tolerance(self, variant: str) -> float | None:
        """The tolerance that is declared for a variant; None where none is."""
        own = self.find_variant(variant)[0].tolerance
        return self.workload.declaration.tolerance if own is None else own

    @cached_property
    def judge(self) -> Judge | None:
        """The program of the variant that others are judged by, with the case's arguments; None where there is none."""
        if self.judging_variant is None:
            return None
        implementation, mode = self.find_variant(self.judging_variant)
        return Judge(
            self._fix_params(implementation.function),
            self.arguments,
            is_traced=mode != MIXED,
            is_stream=self.workload.declaration.stream,
            carry=self.workload.carried or None,
        )

    def trace_judge(self) -> Any:
        """The judge's traced program; None where it has none."""
        return None if self.judge is None else self.judge.trace()

    @cached_property
    def olds(self) -> Olds:
        """Arrays that a call begins with, of which its outputs can be updates. A stream's outputs are many calls'."""
        return Olds(() if self.workload.declaration.stream else self.list_arrays())

    def list_arrays(self) -> list[Any]:
        """All leaves that a call begins with."""
        return jax.tree.leaves(self.arguments)

    def _call_judging_variant(self) -> Any:
        if self.judging_variant is None:
            return Unavailable("no variant to compare with")
        try:
            result = self.call_apart(self.judging_variant)
        except Exception as error:  # noqa: BLE001  a suite's code may raise anything, which its own check records
            return Unavailable(f"{self.judging_variant}, the variant to compare with, failed: {describe_error(error)}")
        return jax.tree.map(lambda leaf: numpy.array(as_array(leaf)), result)  # later calls may take its memory

    def call_apart(self, variant: str) -> Any:
        """The result of one call of a variant, ready, while another one stays prepared."""
        prepared = self._last[1] if self._last is not None and self._last[0] == variant else self._prepare(variant)
        if isinstance(prepared, _Failure):
            raise prepared.error.with_traceback(prepared.traceback)
        prepared.reset()
        return prepared.call_and_wait()

    @property
    def reference_name(self) -> str:
        """What a person calls the result that variants are compared with."""
        return "baseline" if isinstance(self.workload.declaration.reference, NoReference) else "reference"

    @cached_property
    def reference(self) -> Any:
        """The trusted result, from the same inputs in NumPy's widest types; of a stream, one per call.

        Without a reference, what the variant gives that others are judged by, or why that is not known.
        """
        reference = self.workload.declaration.reference
        if isinstance(reference, NoReference):
            return self._call_judging_variant()
        workload = self.workload

        def once(*args: Any) -> Any:
            return call_with(reference, self.params, *jax.tree.map(widest, args))

        if not workload.declaration.stream:
            return once(*self.arguments)
        if not workload.declaration.state.carry:
            return [once(*item) for item in self.arguments]
        carried = Carried(once, workload.carried, begin=lambda args: args)
        return carried.over(self.arguments)

    def find_excess(self, prepared: Prepared) -> str | None:
        """Why a variant cannot be called here, or None; also where that is not known.

        The plan knows better than the arguments alone: also temporaries, and arguments that are not used.
        """
        if prepared.stages is not None:
            try:
                planned = planned_peak_bytes(prepared.stages.compiled, self.platform)
            except UnknownError:  # the probe memory adds the note
                planned = None
            if (excess := compare_with_capacity(planned, self.capacity_bytes)) is not None:
                return excess
        return None if self.too_large is None else f"{self.too_large} for its arguments alone"

    def declared_traps(self, variant: str) -> frozenset[str]:
        """Kinds of traps that the variant has on purpose."""
        return self.workload.find_declared_traps(self._find_original(variant))

    @cached_property
    def wide_inputs(self) -> tuple[str, ...]:
        """Dtypes of NumPy arrays that the suite gives and JAX takes as narrower ones.

        Large inputs are not made again to be looked at.
        """
        if self.wide is not None:
            return self.wide
        if size_bytes(self.arguments) > LARGEST_REMADE:
            return ()
        inputs = self.workload.declaration.inputs
        return find_wide_inputs(lambda: call_with(inputs, self.params, jax.random.key(INPUT_SEED)))

    def compiles(self, variant: str) -> int | None:
        """How many programs the variant may compile, as declared."""
        return self.workload.find_compile_budget(self._find_original(variant), self.params)


LONGEST_REASON = 1000
LONGEST_TRACEBACK = 4000

ProbeVariant = Callable[[str, Prepared, Context], Outcome]


def probe_each(probe: str, probe_variant: ProbeVariant, variants: Iterable[str], context: Context) -> Findings:
    """Prepare one variant after the other and probe it.

    Args:
      probe_variant: (variant's name, prepared, context) -> outcome. What it raises becomes a failed outcome.
    """
    return Findings({variant: _probe_one(probe, probe_variant, variant, context) for variant in variants})


def _probe_one(probe: str, probe_variant: ProbeVariant, variant: str, context: Context) -> Outcome:
    context.variant = variant
    context.stage("prepare")
    try:
        prepared = context.prepare(variant)
        if PROBES[probe].calls and (excess := context.find_excess(prepared)) is not None:
            return Outcome(status=Status.TOO_LARGE, reason=excess)
        context.stage(probe)
        prepared.reset()
        return probe_variant(variant, prepared, context)
    except Exception as error:  # noqa: BLE001  a suite's code may raise anything, and that is a result
        is_analysis = context.at == probe and not PROBES[probe].calls  # a stage without user code
        if is_analysis and not isinstance(error, (RefusedError, RuntimeFailure)) and not is_disk_full(error):
            error = blame_jaxmeter(error, f"what stage '{probe}' finds")
        return describe_failure(error, context.at)


def describe_unread(what: str, error: BaseException) -> str:
    """Return a note on a failed reader: the backend's message, a limit of the release, or jaxmeter's own fault.

    Args:
      what: What the reader reads, such as `the executable`.
      error: Error of the reader, which calls no user code.
    """
    if isinstance(error, (NoTextError, NotImplementedError, RuntimeFailure)):
        return f"{what} cannot be read: {describe_error(error)}"
    return describe_own_fault(error, what)


def describe_failure(error: Exception, stage: str) -> Outcome:
    """Return a failed outcome: the stage, the error's message, and the traceback in place of stderr.

    If jaxmeter itself fails, the outcome is `unknown`, with jaxmeter's own fault as the reason.
    If the compiler finds a program too large for its device, the outcome is `does not fit`, as with the memory plan.

    Raises:
      The error itself if the disk is full, which has nothing to do with the variant.
    """
    if is_disk_full(error):
        raise error
    if is_own_fault(error) and not describe_missing_name(error):
        return Outcome(
            status=Status.UNKNOWN,
            reason=make_private(describe_own_fault(error, f"what stage '{stage}' finds"))[:LONGEST_REASON],
            stderr=make_private("".join(traceback.format_exception(error)))[-LONGEST_TRACEBACK:],
        )
    if isinstance(error, RefusedError):
        return Outcome(status=Status.UNSUPPORTED, reason=make_private(str(error))[:LONGEST_REASON])
    if (refused := describe_refused_option(error)) is not None:
        return Outcome(status=Status.FAILED, reason=make_private(refused)[:LONGEST_REASON])
    if missing := describe_missing_name(error):
        return Outcome(status=Status.UNSUPPORTED, reason=missing)
    words = find_words(error)
    if stage == "compile" and "RESOURCE_EXHAUSTED" in words:
        return Outcome(status=Status.TOO_LARGE, reason=make_private(words)[:LONGEST_REASON])
    text = "".join(traceback.format_exception(error))
    return Outcome(
        status=Status.FAILED,
        reason=make_private(f"in stage '{stage}': {type(error).__name__}: {words}")[:LONGEST_REASON],
        stderr=make_private(text[-LONGEST_SEARCHED:])[-LONGEST_TRACEBACK:],
    )
