"""`harness.measure(fn, *args)`: the same machinery in miniature, inside the process that calls it.

One process gives no interval between processes, and its compile times are not those of a fresh one; the result says so.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import msgspec

from harness.declare.declaration import Declaration
from harness.declare.implementation import Implementation
from harness.declare.workload import Workload
from harness.machine.places import BACKENDS
from harness.machine.process_settings import describe_settings
from harness.notebook.callables import CALLABLE_MODES, Given, describe_callable
from harness.notebook.measurement import Measurement
from harness.plan.cases import plan_case
from harness.plan.settings import make_settings
from harness.record import CaseRecord, LaunchRecord, Outcome, PlannedCase, Settings, Status, VariantRecord, now
from harness.record.statistics import VERSION
from harness.record.timing_summary import summarise

if TYPE_CHECKING:
    from harness.notebook.variants import NotebookContext

IN_PROCESS = (
    "measured inside this process: no interval between processes; compile times are not those of a fresh process"
)
PROBES = ("numerics", "memory", "compilation", "timing")
"""What a call of the user's own process can tell: it is not forked, and has no cache and no trace of its own."""

BLOCK_S, BLOCKS = 0.02, 24
"""Longer and fewer blocks than a run has: the first call of a block finds the caches as another variant left them. With
blocks of 2 ms a step of 4.8 ms next to its eager code, one call a block, took 1.2 to 1.4 times as long as in a loop."""

TIMED = (Status.OK, Status.WRONG)
"""A user sees how long a wrong variant takes, and no speedup."""

Functions = Callable[..., Any] | Mapping[str, Callable[..., Any]]
Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Options:
    """How something is measured.

    Args:
      modes: Some of eager, jit, aot; speedups refer to the first. A callable that is transformed is measured as given
        in any case. By default a plain function is measured in all, a transformed one as given, eager and jit.
      tolerance: Largest error against the reference, relative to its largest entry; by default by dtype.
      time_limit_s: After this nothing more is begun, and variants that were not timed are skipped. What has begun ends.
      progress: Whether to say on stderr what it does; by default where a person is likely to look.
      carry: Argument, by place or name -> the output that takes its place in the next call: an index, or "result".
      most_calls: How often a function that calls back into Python is called while it is timed.
    """

    modes: Sequence[str] | None = None
    tolerance: float | None = None
    time_limit_s: float = math.inf
    progress: bool | None = None
    carry: Mapping[int | str, int | str] | None = None
    most_calls: int = 200

    def __post_init__(self) -> None:
        if self.modes is not None:
            _check_modes(self.modes)
        if self.tolerance is not None and not 0 <= self.tolerance < math.inf:
            raise ValueError(f"tolerance must be a number ≥ 0; got {self.tolerance!r}")
        if self.most_calls != int(self.most_calls) or self.most_calls < 1:
            raise ValueError(f"most_calls must be an integer ≥ 1; got {self.most_calls!r}")


def _check_modes(modes: Sequence[str]) -> None:
    known = ", ".join(CALLABLE_MODES)
    if isinstance(modes, str) or not modes:
        raise ValueError(f"modes is a list of some of {known}; got {modes!r}")
    for index, mode in enumerate(modes):
        if mode not in CALLABLE_MODES:
            raise ValueError(f"no mode '{mode}'; modes are {known}")
        if mode in modes[:index]:
            raise ValueError(f"modes names '{mode}' twice")


@dataclass(frozen=True)
class Measure:
    """`measure(function, *args, **kwargs)` measures a call; `measure.with_options(...)` measures it otherwise."""

    options: Options = Options()

    def with_options(self, **options: Any) -> Measure:
        """The same with other options: `measure.with_options(modes=("jit",), tolerance=1e-3)(step, state, batch)`.

        Args:
          options: Those of `Options`: modes, tolerance, time_limit_s, progress, carry, most_calls.
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
          functions: A callable, or several by name; it is called exactly as it is. Speedups refer to the first.
          args: Its arguments. Arrays and Python's numbers are traced, other leaves are static.
          kwargs: Its keyword arguments.
        Returns:
          Times, compile stages and memory of each variant, and whether all give the same result.
        Raises:
          TypeError: What is passed cannot be called, or returns a generator.
          harness.notebook.state.StateError: What the function could change in place is too large to be kept.
          Whatever the function itself raises when it is called eagerly.
        """
        from harness.notebook.state import State  # here, so that declaring suites needs no jax

        given = _describe_all(functions)
        state = State.of_call([item.function for item in given.values()], args, kwargs)
        state.keep()
        try:
            return _measure(given, args, kwargs, state, self.options)
        finally:
            state.put_back()


measure = Measure()


def _describe_all(functions: Functions) -> dict[str, Given]:
    if not isinstance(functions, Mapping):
        given = describe_callable(functions)
        return {given.name: given}
    if not functions:
        raise ValueError('there is no function to measure; pass one, or several by name: {"old": f, "new": g}')
    for name in functions:
        if not name or ":" in name:
            raise ValueError(f"a function's name must be a text without a colon; got {name!r}")
    return {name: describe_callable(function, name) for name, function in functions.items()}


def _measure(
    given: dict[str, Given], args: tuple[Any, ...], kwargs: dict[str, Any], state: Any, options: Options
) -> Measurement:
    import jax

    from harness.machine.environment import describe_environment
    from harness.programs.caches import without_cache

    say = print_progress if (is_watched() if options.progress is None else options.progress) else ignore
    started, start = now(), time.monotonic()

    def is_late() -> bool:
        return time.monotonic() - start > options.time_limit_s

    settings_of_process = describe_settings(jax.config.values, os.environ)
    for sentence in settings_of_process:
        say(sentence)
    context = _make_context(given, args, kwargs, state, options)
    with without_cache():  # a user's own would make compiling look quick, and would keep what is only measured
        outcomes, notes = _look_at_all(context, options, say, is_late)
        case = _plan(context, outcomes)
        settings = make_settings("quick", launches=1, suites=(), run_id=case.id)
        settings = msgspec.structs.replace(settings, probes=PROBES, shows_wrong=True, block_s=BLOCK_S, blocks=BLOCKS)
        launch = _time(context, outcomes, case, settings, options, say, is_late)
    return Measurement(
        case=case,
        record=CaseRecord(
            id=case.id,
            name=case.name,
            started=started,
            elapsed_s=round(time.monotonic() - start, 3),
            launches=1,
            variants=tuple(VariantRecord(name=name, outcomes=found) for name, found in outcomes.items()),
            notes=tuple(dict.fromkeys((*settings_of_process, IN_PROCESS, *notes))),
            statistics_version=VERSION,
        ),
        environment=describe_environment(jax),
        settings=settings,
        launch=launch,
    )


def _make_context(
    given: dict[str, Given], args: tuple[Any, ...], kwargs: dict[str, Any], state: Any, options: Options
) -> NotebookContext:
    import jax

    from harness.notebook.variants import NotebookContext

    here = jax.default_backend()
    place = next((item for item in BACKENDS.values() if item.jax_backend == here), None)
    if place is None:
        raise ValueError(f"jax runs on '{here}', which jaxmeter does not know; backends are {', '.join(BACKENDS)}")
    asked = None if options.modes is None else tuple(options.modes)
    first = next(iter(given.values()))
    workload = Workload(
        name=first.name,
        module="notebook",
        function=first.function,
        # The reference is what the first variant gives; the context knows it.
        declaration=Declaration(inputs=lambda key: args, reference=lambda *inputs: None, tolerance=options.tolerance),
    )
    workload.implementations += [
        Implementation(item.function, name=name, modes=item.choose_modes(asked)) for name, item in given.items()
    ]
    return NotebookContext(
        workload,
        {},
        place,
        args,
        time.perf_counter,
        folder=None,
        given=given,
        keywords=kwargs,
        state=state,
        carry=dict(options.carry or {}),
    )


def _look_at_all(
    context: NotebookContext, options: Options, say: Say, is_late: Callable[[], bool]
) -> tuple[dict[str, dict[str, Outcome]], list[str]]:
    """Outcomes by variant and probe, and notes. The eager variant of the first function comes first, if there is one.

    Raises:
      Whatever the function itself raises, where no variant of it can be called.
    """
    from harness.probes.look_at_each import describe_failure

    variants = context.workload.variants
    first_name = context.workload.implementations[0].name
    eager = f"{first_name}:eager"
    order = [eager, *(name for name in variants if name != eager)] if eager in variants else list(variants)
    outcomes: dict[str, dict[str, Outcome]] = {}
    notes: list[str] = []
    reference: str | None = None
    failed: dict[str, Exception] = {}
    for name in order:
        if is_late():
            reason = f"the limit of {options.time_limit_s:g} s was used up before it"
            outcomes[name] = {"numerics": Outcome(status=Status.SKIPPED, reason=reason)}
            continue
        if reference is None:
            say(f"calling {name} for the reference")
            context.check_with(name)
            try:
                _ = context.reference
            except Exception as error:
                if name.endswith(":eager") and not _is_optional(context, name, options):
                    raise
                failed[name] = error
                continue
            reference = name
        say(f"checking {name}")
        found = _look(name, context)
        if found["numerics"].status not in TIMED and _is_optional(context, name, options):
            notes.append(_describe_left_out(name, found["numerics"].reason))
            continue
        outcomes[name] = found
    for name, raised in failed.items():
        if reference is None and not _is_optional(context, name, options):
            raise raised
        if _is_optional(context, name, options):
            notes.append(_describe_left_out(name, raised))
        else:
            outcomes[name] = {"numerics": describe_failure(raised, "call")}
    if reference is not None:
        notes += _describe_reference(reference, outcomes)
    variants_of: dict[str, list[str]] = {}
    for name in outcomes:
        for note in context.list_notes(name):
            variants_of.setdefault(note, []).append(name)
    notes += [f"{', '.join(names)}: {note}" for note, names in variants_of.items()]
    if context.calls_back(outcomes):
        words = (
            f"it calls back into Python, so it is called at most {options.most_calls} times; most_calls= changes that"
        )
        say(words)
        notes.append(words)
    if any(map(context.is_one_jitted_call, outcomes)):
        notes.append(_one_program())
    return {name: outcomes[name] for name in variants if name in outcomes}, notes


def _one_program() -> str:
    from harness.notebook.variants import ONE_PROGRAM

    return ONE_PROGRAM


def _is_optional(context: NotebookContext, variant: str, options: Options) -> bool:
    """Whether nobody asked for a variant: a transformed callable without its transformation."""
    name, _, mode = variant.rpartition(":")
    given = context.given[name]
    return given.is_transformed and mode != "as_given" and options.modes is None


def _describe_left_out(variant: str, why: object) -> str:
    from harness.machine.environment import describe_error

    reason = describe_error(why) if isinstance(why, Exception) else str(why)
    return f"{variant} is left out, since it does not run without its transformation: {reason}"


def _describe_reference(reference: str, outcomes: Mapping[str, object]) -> list[str]:
    checked = [name for name in outcomes if name != reference]
    return [f"results are compared with those of {reference.replace('as_given', 'as given')}"] if checked else []


def _look(variant: str, context: NotebookContext) -> dict[str, Outcome]:
    """Outcomes by probe. Eager code has no stages and no plan.

    Nothing that this process has compiled is forgotten: it is the user's own.
    """
    from harness.probes.compilation import compile_and_call
    from harness.probes.look_at_each import look_at_each
    from harness.probes.memory import read_plan
    from harness.probes.numerics import check

    def check_all(name: str, prepared: object, of: Any) -> Outcome:
        return check(name, context.prepare_check(name), context)

    looks: dict[str, Any] = {"numerics": check_all}
    if context.workload.find_variant(variant)[1] != "eager":
        looks = {"compilation": compile_and_call, "memory": read_plan, **looks}
    return {probe: look_at_each(probe, look, (variant,), context).outcomes[variant] for probe, look in looks.items()}


def _plan(context: NotebookContext, outcomes: Mapping[str, object]) -> PlannedCase:
    """The case of the variants that are left; with the first of them as the baseline."""
    case = plan_case("notebook", context.workload, {}, context.place)
    variants = tuple(item for item in case.variants if item.name in outcomes)
    baseline = next((item.name for item in variants), case.baseline)
    return msgspec.structs.replace(case, variants=variants, baseline=baseline)


def _time(
    context: NotebookContext,
    outcomes: dict[str, dict[str, Outcome]],
    case: PlannedCase,
    settings: Settings,
    options: Options,
    say: Say,
    is_late: Callable[[], bool],
) -> LaunchRecord | None:
    """Times all variants that can be timed, and adds the outcomes."""
    from harness.probes.timing import time_launch

    sound = tuple(name for name, found in outcomes.items() if found["numerics"].status in TIMED)
    if not sound:
        return None
    if is_late():
        for name in sound:
            reason = f"the limit of {options.time_limit_s:g} s was used up before it was timed"
            outcomes[name]["timing"] = Outcome(status=Status.SKIPPED, reason=reason)
        return None
    say(f"timing {', '.join(sound)}")
    context.case, context.settings = case, settings
    prepared = {name: context.call(name).prepare() for name in sound}
    if context.calls_back(sound):
        most = max(1, (options.most_calls - context.count_calls()) // len(sound))
        prepared = {name: replace(one, most_calls=most) for name, one in prepared.items()}
    launch = time_launch(prepared, context)
    for name in sound:
        outcomes[name]["timing"] = summarise([[launch]], name, case.baseline)
    return launch


def is_watched() -> bool:
    """Whether a person is likely to look: at a terminal, or in a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


def print_progress(doing: str) -> None:
    """A line on stderr."""
    print(f"harness.measure: {doing}", file=sys.stderr, flush=True)


def ignore(doing: str) -> None:
    """Nobody looks."""
