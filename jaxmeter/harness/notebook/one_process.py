"""`jaxmeter.measure(fn, *args)`: checked, planned as a case, and timed in the user's own process."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import jax
import msgspec

from jaxmeter.harness.declare.declaration import Declaration, Implementation, NoReference
from jaxmeter.harness.declare.workload import Workload
from jaxmeter.harness.machine.environment import describe_environment, list_packages
from jaxmeter.harness.machine.interference import describe_settings
from jaxmeter.harness.machine.jax_internals import describe_untested
from jaxmeter.harness.machine.platforms import BACKENDS, refuse_ranks
from jaxmeter.harness.metrics.statistics import VERSION
from jaxmeter.harness.metrics.within import summarise
from jaxmeter.harness.notebook.calls import Given, describe_callable
from jaxmeter.harness.notebook.checking import TIMED, Say, check_all, is_slow
from jaxmeter.harness.notebook.measurement import IN_PROCESS, Measurement
from jaxmeter.harness.notebook.options import FEWEST_BLOCKS, Budget, Options
from jaxmeter.harness.notebook.state import UserState
from jaxmeter.harness.notebook.variants import NotebookContext, describe_one_program
from jaxmeter.harness.plan.cases import plan_case
from jaxmeter.harness.plan.settings import make_settings
from jaxmeter.harness.probes.timing import time_process
from jaxmeter.harness.probes.trace import capture_and_read
from jaxmeter.harness.programs.jax_events import without_cache
from jaxmeter.harness.record import (
    Block,
    CaseRecord,
    Outcome,
    PlannedCase,
    ProcessRecord,
    Settings,
    Status,
    VariantRecord,
    now,
)

PROBES = ("numerics", "memory", "compilation", "timing")
"""Probes that work in the user's own process, which is not forked, and has no cache and no trace of its own."""

NOT_COMPARED = NoReference("comparable=False, so results and changes in place may differ", comparable=False)

BLOCK_S, BLOCKS, SETTLE_S = 0.02, 24, 0.02
"""Longer and fewer blocks than a run has, after untimed calls: the first calls of a block find caches and memory as
another variant left them. A step of 4.8 ms was interleaved with its eager code and compared with a loop of the step
alone. With blocks of 2 ms, one call each, it took 1.2 to 1.4 times as long; without the untimed calls 1.1 to 1.2
times."""


def measure_here(
    given: dict[str, Given], args: tuple[Any, ...], kwargs: dict[str, Any], state: UserState, options: Options
) -> Measurement:
    """Check every variant of a call in this process, time those that can be timed, interleaved, and describe all.

    Args:
      given: Callables by name.
      state: What calls may change in place; it was kept.
    Raises:
      Whatever the function itself raises, where no variant of it can be called.
    """
    is_verbose = is_watched() if options.progress is None else options.progress
    say: Say = print_progress if is_verbose else lambda _: None
    started = now()
    budget = Budget(options.time_limit_s, _make_settings(""))
    untested = filter(None, (describe_untested(list_packages()),))
    settings_of_process = (*untested, *describe_settings(jax.config.values, os.environ))
    for sentence in settings_of_process:
        say(sentence)
    context = _make_context(given, args, kwargs, state, options)
    context.draws_s = lambda: budget.left_s
    with without_cache():  # a user's own would make compiling look quick, and would keep what is only measured
        outcomes, notes = check_all(context, options, say, budget)
        fast, slow = _divide(context, outcomes, budget)
        case = _plan(context, outcomes, fast)
        settings = _make_settings(case.id)
        process = _time(context, outcomes, case, settings, (fast, slow), options, say, budget)
        if options.trace:
            _trace(context, outcomes, options, say, budget)
        notes += describe_one_program(context.list_jitted_calls(), process)
        notes += filter(None, (item.describe_modes(options.named_modes) for item in given.values()))
    return Measurement(
        case=case,
        record=CaseRecord(
            id=case.id,
            name=case.name,
            started=started,
            elapsed_s=round(budget.elapsed_s, 3),
            processes=1,
            variants=tuple(VariantRecord(name=name, outcomes=by_probe) for name, by_probe in outcomes.items()),
            notes=tuple(dict.fromkeys((*settings_of_process, IN_PROCESS, *notes))),
            statistics_version=VERSION,
        ),
        environment=describe_environment(jax),
        settings=settings,
        process=process,
    )


def _make_settings(run_id: str) -> Settings:
    settings = make_settings("quick", processes=1, suites=(), run_id=run_id)
    return msgspec.structs.replace(
        settings, probes=PROBES, shows_wrong=True, block_s=BLOCK_S, blocks=BLOCKS, settle_s=SETTLE_S
    )


def _make_context(
    given: dict[str, Given], args: tuple[Any, ...], kwargs: dict[str, Any], state: UserState, options: Options
) -> NotebookContext:
    here = jax.default_backend()
    platform = next((item for item in BACKENDS.values() if item.jax_backend == here), None)
    if platform is None:
        raise ValueError(f"jax runs on '{here}', which jaxmeter does not know; backends are {', '.join(BACKENDS)}")
    first, asked = next(iter(given.values())), options.named_modes
    own = tuple(item.args for item in given.values() if item.args is not None)
    workload = Workload(
        name=first.name,
        module="notebook",
        function=first.function,
        # What is compared with is what the first variant gives; the context knows it.
        declaration=Declaration(
            inputs=lambda key: own or args,
            reference=(lambda *inputs: None) if options.comparable else NOT_COMPARED,
            tolerance=options.tolerance,
        ),
    )
    workload.implementations += [
        Implementation(item.function, name=name, modes=item.choose_modes(asked)) for name, item in given.items()
    ]
    return NotebookContext(
        workload,
        {},
        platform,
        args,
        time.perf_counter,
        folder=None,
        given=given,
        keywords=kwargs,
        state=state,
        carry=dict(options.carry or {}),
        comparable=options.comparable,
    )


def _divide(
    context: NotebookContext, outcomes: Mapping[str, Mapping[str, Outcome]], budget: Budget
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Variants that are timed in the same passes, and slow eager code next to compiled programs, timed after them."""
    sound = tuple(name for name, by_probe in outcomes.items() if by_probe["numerics"].status in TIMED)
    slow = tuple(name for name in sound if is_slow(context, name, budget))
    fast = tuple(name for name in sound if name not in slow)
    # The first function is the baseline, however slow: without it in the passes, nothing has a speedup.
    has_baseline = bool(fast) and _find_function(fast[0]) == _find_function(sound[0])
    is_apart = has_baseline and any(not name.endswith(":eager") for name in fast)
    return (fast, slow) if is_apart else (sound, ())


def _find_function(variant: str) -> str:
    return variant.rpartition(":")[0]


def _plan(context: NotebookContext, outcomes: Mapping[str, object], fast: Sequence[str]) -> PlannedCase:
    """The case of the variants that are left; the first that is timed in shared passes is the baseline."""
    case = plan_case("notebook", context.workload, {}, context.platform)
    variants = tuple(item for item in case.variants if item.name in outcomes)
    baseline = next(iter((*fast, *(item.name for item in variants))), case.baseline)
    return msgspec.structs.replace(case, variants=variants, baseline=baseline)


def _time(
    context: NotebookContext,
    outcomes: dict[str, dict[str, Outcome]],
    case: PlannedCase,
    settings: Settings,
    groups: Sequence[tuple[str, ...]],
    options: Options,
    say: Say,
    budget: Budget,
) -> ProcessRecord | None:
    """Times the variants of each group in passes of their own, and adds the outcomes."""
    timed: ProcessRecord | None = None
    called = context.count_calls()
    for group in filter(None, groups):
        calls_s = [context.find_call_s(name, budget.left_s) for name in group]
        blocks = budget.choose_blocks(calls_s)
        if blocks is None:
            for name in group:
                reason = _explain_untimed(budget, calls_s, options)
                outcomes[name]["timing"] = Outcome(status=Status.SKIPPED, reason=reason)
            continue
        say(f"timing {', '.join(group)}")
        context.case, context.settings = case, msgspec.structs.replace(settings, blocks=blocks)
        prepared = {name: context.call(name).prepare() for name in group}
        if context.describe_effects(group):
            most = max(1, (options.most_calls - called) // sum(map(len, groups)))
            prepared = {name: replace(call, most_calls=most) for name, call in prepared.items()}
        process = time_process(prepared, context)
        for name in group:
            outcomes[name]["timing"] = summarise([[process]], name, case.baseline)
        timed = process if timed is None else _append(timed, process)
    return timed


def _explain_untimed(budget: Budget, calls_s: Sequence[float], options: Options) -> str:
    limit = f"the limit of {options.time_limit_s:g} s"
    if budget.left_s <= 0:
        return f"{limit} was used up before it was timed"
    timing_s = budget.estimate_timing_s(calls_s, FEWEST_BLOCKS)
    return f"timing would take about {timing_s:.1f} s, and {budget.left_s:.1f} s of {limit} are left"


def _append(process: ProcessRecord, later: ProcessRecord) -> ProcessRecord:
    """Return one record of two groups, which share no pass."""
    numbers = [block.pass_number for item in process.variants for block in item.blocks]
    shift = max(numbers, default=-1) + 1

    def move(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
        return tuple(msgspec.structs.replace(block, pass_number=block.pass_number + shift) for block in blocks)

    return msgspec.structs.replace(
        process,
        variants=(
            *process.variants,
            *(msgspec.structs.replace(item, blocks=move(item.blocks)) for item in later.variants),
        ),
        calibrations=(*process.calibrations, *later.calibrations),
        device_states=(*process.device_states, *later.device_states),
    )


def _trace(
    context: NotebookContext,
    outcomes: dict[str, dict[str, Outcome]],
    options: Options,
    say: Say,
    budget: Budget,
) -> None:
    """Capture all variants that were timed, and add the outcomes."""
    timings = {name: by_probe["timing"] for name, by_probe in outcomes.items() if "timing" in by_probe}
    timed = tuple(name for name, timing in timings.items() if timing.status is Status.OK)
    effects = context.describe_effects(timed)
    for name in timed:
        if effects:
            # Tens of calls more would print and call back as often.
            reason = f"not captured: {effects}"
            outcomes[name]["trace"] = Outcome(status=Status.SKIPPED, reason=reason)
        elif budget.left_s <= 0:
            reason = f"the limit of {options.time_limit_s:g} s was used up before it was captured"
            outcomes[name]["trace"] = Outcome(status=Status.SKIPPED, reason=reason)
        else:
            say(f"capturing {name}")
            outcomes[name]["trace"] = _trace_one(context, name)


def _trace_one(context: NotebookContext, name: str) -> Outcome:
    prepared = context.call(name).prepare()

    def call() -> None:
        prepared.wait(prepared.call(*prepared.args))

    with tempfile.TemporaryDirectory(prefix="jaxmeter-") as folder:
        return capture_and_read(call, name, Path(folder), has_device=context.platform.trace_plane is not None)


def is_watched() -> bool:
    """Whether a person is likely to look: at a terminal, or in a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


def print_progress(doing: str) -> None:
    """A line on stderr."""
    print(f"jaxmeter.measure: {doing}", file=sys.stderr, flush=True)


Function = Callable[..., Any] | tuple[Callable[..., Any], tuple[Any, ...]]
"""A callable; with others, alternatively with positional arguments of its own: `(f, (a, b))`."""

Functions = Callable[..., Any] | Mapping[str, Function]


@dataclass(frozen=True)
class Measure:
    """`measure(function, *args, **kwargs)` measures a call; `measure.with_options(...)` changes how."""

    options: Options = field(default_factory=Options)

    def with_options(self, **options: Any) -> Measure:
        """The same with other options: `measure.with_options(modes=("jit",), tolerance=1e-3)(step, state, batch)`.

        Args:
          options: Those of `Options`: modes, tolerance, time_limit_s, progress, carry, most_calls, trace, comparable.
        Raises:
          TypeError: There is no such option.
          ValueError: An option has no such value.
        """
        known = [item.name for item in fields(Options)]
        for name in options:
            if name not in known:
                raise TypeError(f"measure has no option '{name}'; options are {', '.join(known)}")
        return Measure(replace(self.options, **options))

    def __call__(self, functions: Functions, /, *args: Any, **kwargs: Any) -> Measurement:
        """Measure a call in this process: each function in each of its modes, interleaved.

        Args:
          functions: A callable, or several by name; it is called exactly as it is. The first is the baseline of
            speedups. A function with arguments of its own, `{"old": (f, (a, b))}`, gets only those.
          args: Its arguments. Arrays and Python's numbers are traced, other leaves are static.
          kwargs: Its keyword arguments.
        Returns:
          Times, compile stages and memory of each variant, and whether all give the same result.
        Raises:
          TypeError: What is passed cannot be called, or returns a generator.
          ValueError: The call has an impossible form, or this process is one of several ranks.
          jaxmeter.harness.notebook.state.StateError: What the function could change in place is too large to be kept.
          Whatever the function itself raises when it is called eagerly.
        """
        import jax  # here, so that declaring suites needs no jax

        from jaxmeter.harness.notebook.state import UserState

        if (problem := refuse_ranks(os.environ) or refuse_ranks({}, jax.process_count())) is not None:
            raise ValueError(problem)
        given = _describe_all(functions)
        if (args or kwargs) and all(item.args is not None for item in given.values()):
            raise ValueError("every function has its own arguments; pass no shared arguments")
        calls = [
            (item.function, args, kwargs) if item.args is None else (item.function, item.args, {})
            for item in given.values()
        ]
        state = UserState.of_calls(calls)
        state.keep()
        try:
            return measure_here(given, args, kwargs, state, self.options)
        finally:
            state.put_back()


measure = Measure()


def _describe_all(functions: Functions) -> dict[str, Given]:
    if not isinstance(functions, Mapping):
        given = describe_callable(functions)
        return {given.name: given}
    if not functions:
        raise ValueError('no function to measure; pass one, or several by name: {"old": f, "new": g}')
    for name in functions:
        if not _is_name(name):
            raise ValueError(f'a function\'s name must be a text without a colon, as in {{"old": f}}; got {name!r}')
    return {name: _describe_one(function, name) for name, function in functions.items()}


def _describe_one(function: Any, name: str) -> Given:
    if not isinstance(function, tuple | list):
        return describe_callable(function, name)
    if not (len(function) == 2 and callable(function[0]) and isinstance(function[1], tuple)):
        raise ValueError(
            f"'{name}' must be a function, or a function with a tuple of its positional arguments, as in "
            f'{{"{name}": (f, (a, b))}}; keyword arguments go into functools.partial(f, mask=mask)'
        )
    return replace(describe_callable(function[0], name), args=function[1])


def _is_name(name: object) -> bool:
    return isinstance(name, str) and name != "" and ":" not in name
