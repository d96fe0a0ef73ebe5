"""`harness.measure(fn, *args)`: the same machinery in miniature, inside the process that calls it.

One process gives no interval, and its compile times are not those of a fresh one; the result says so.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

import msgspec

from harness.declare.declaration import Declaration
from harness.declare.implementation import MODES
from harness.declare.workload import Workload
from harness.machine.places import BACKENDS
from harness.plan.cases import plan_case
from harness.plan.settings import make_settings
from harness.record import CaseRecord, Environment, Outcome, PlannedCase, Settings, Status, VariantRecord, now
from harness.record.metrics import METRICS
from harness.record.recorded import RecordedVariant, list_variants
from harness.record.sentences import describe_details
from harness.record.statistics import VERSION
from harness.record.timing_summary import summarise

if TYPE_CHECKING:
    from harness.probes import Context

IN_PROCESS = "measured inside this process: no interval, and compile times are not those of a fresh process"
UNWRAPPED = "measured without its own jax.jit: static and donated arguments do not apply; pass static ones by keyword"
PROBES = ("numerics", "memory", "compilation", "timing")
"""What a call of the user's own process can tell: it is not forked, and has no cache and no trace of its own."""

_COLUMNS = (
    ("execution_s", 1e6, "us"),
    ("dispatch_s", 1e6, "us"),
    ("trace_s", 1e3, "ms"),
    ("lower_s", 1e3, "ms"),
    ("compile_s", 1e3, "ms"),
    ("first_call_s", 1e3, "ms"),
    ("temp_bytes", 2**-10, "KiB"),
)
"""Metrics of the table, with the factor to the unit that they are shown in."""


@dataclass(frozen=True, repr=False)
class Measurement:
    """One function, measured in every mode. Printing it shows a table.

    Args:
      case: What was measured, as a run's manifest would plan it.
      record: The results, as a run's case record would hold them.
      environment: Where.
      settings: How it was timed.
    """

    case: PlannedCase
    record: CaseRecord
    environment: Environment
    settings: Settings

    def value(self, variant: str, metric: str) -> float | None:
        """One metric of a variant, named in full or by its mode such as "jit"; None where it has none.

        Raises:
          KeyError: There is no such variant or metric; the message has those that there are.
        """
        found = [item for item in self._variants() if variant in (item.planned.name, item.planned.mode)]
        if not found:
            raise KeyError(f"no variant '{variant}'; there are {', '.join(one.name for one in self.case.variants)}")
        if metric not in METRICS or METRICS[metric].growth_of is not None:
            known = (name for name, entry in METRICS.items() if entry.growth_of is None)
            raise KeyError(f"no metric '{metric}'; there are {', '.join(known)}")
        return next(iter(found[0].read(metric).known), None)

    def __repr__(self) -> str:
        first, rows, remarks = self._describe()
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = ("  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows)
        return "\n".join([first, *lines, *remarks])

    def _repr_html_(self) -> str:
        """The same as a table, for notebooks."""
        first, (heading, *rows), remarks = self._describe()
        head = "".join(f"<th>{escape(cell)}</th>" for cell in heading)
        body = "".join(
            f"<tr><th>{escape(row[0])}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in row[1:])}</tr>"
            for row in rows
        )
        below = "".join(f"<br>{escape(remark)}" for remark in remarks)
        return (
            f"<table><caption>{escape(first)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            f"<p>{below.removeprefix('<br>')}</p>"
        )

    def _variants(self) -> tuple[RecordedVariant, ...]:
        return list_variants(self.case, self.record, self.environment, self.settings)

    def _describe(self) -> tuple[str, list[list[str]], list[str]]:
        """What was measured where, a table with its heading, and what must be known of it."""
        jax = self.environment.packages.get("jax", "?")
        first = f"{self.case.name} on {self.environment.device_count} x {self.environment.device_kind}, jax {jax}"
        titles = [f"{METRICS[name].title} [{unit}]" for name, _, unit in _COLUMNS]
        rows = [["", METRICS["speedup"].title, *titles], *map(self._row, self._variants())]
        remarks = []
        for variant in self._variants():
            words = [word for outcome in variant.outcomes.values() for word in _describe(outcome)]
            remarks += [f"{variant.planned.name}: {word}" for word in dict.fromkeys(words)]
        return first, rows, [*remarks, *(f"({note})" for note in self.record.notes)]

    def _row(self, variant: RecordedVariant) -> list[str]:
        ratio = next(iter(variant.read("speedup").known), None)
        is_baseline = variant.planned.name == self.case.baseline
        gain = "baseline" if is_baseline else "-" if ratio is None else f"{ratio:.2f}x"
        values = [next(iter(variant.read(name).known), None) for name, *_ in _COLUMNS]
        cells = [
            "-" if value is None else f"{value * scale:,.1f}"
            for value, (_, scale, _) in zip(values, _COLUMNS, strict=True)
        ]
        return [variant.planned.name, gain, *cells]


def _describe(outcome: Outcome) -> Iterator[str]:
    """What a reader must know of a probe's outcome."""
    if outcome.status not in (Status.OK, Status.UNSUPPORTED):
        yield f"{outcome.status.value}: {outcome.reason}"
    yield from (*describe_details(outcome.details), *outcome.notes)


def measure(
    function: Callable[..., Any],
    /,
    *args: Any,
    modes: Sequence[str] = MODES,
    tolerance: float | None = None,
    time_limit_s: float = math.inf,
    progress: bool | None = None,
    **params: Any,
) -> Measurement:
    """Measures one function in this process, its modes against each other.

    A function with a keyword of an option's name is wrapped: `functools.partial(function, tolerance=1e-3)`.

    Args:
      function: Positional arguments are pytrees of arrays. One that `jax.jit` has wrapped is measured unwrapped.
      args: Its arguments.
      modes: Of eager, jit and aot; gains refer to the first of them. Eager code is called once in any case.
      tolerance: Largest error against what eager code gives, relative to its largest entry; by default by dtype.
      time_limit_s: After this nothing more is begun, and modes that were not timed are skipped. What has begun ends.
      progress: Whether to say on stderr what it does; by default where a person is likely to look.
      params: Keyword arguments, fixed before compilation.
    Returns:
      Times, compile stages and memory of each mode, and whether all modes give what eager code gives.
    Raises:
      ValueError: There is no such mode, or the tolerance is none.
      Whatever the function itself raises when called eagerly.
    """
    import jax  # here, so that declaring suites and reading records need no jax

    from harness.machine.environment import describe_environment
    from harness.probes.timing import time_launch
    from harness.programs.caches import without_cache

    _check_options(modes, tolerance)
    say = print_progress if (is_watched() if progress is None else progress) else ignore
    jitted = hasattr(function, "lower") and hasattr(function, "__wrapped__")
    plain = getattr(function, "__wrapped__") if jitted else function  # noqa: B009  its type does not know
    started, start = now(), time.monotonic()
    say("calling it once without jit")
    expected = jax.block_until_ready(plain(*args, **params))
    workload = _make_workload(plain, args, params, expected, tuple(modes), tolerance)
    context = _make_context(workload, args)
    outcomes: dict[str, dict[str, Outcome]] = {}
    with without_cache():  # a user's own would make compiling look quick, and would keep what is only measured
        for name in workload.variants:
            if time.monotonic() - start > time_limit_s:
                late = Outcome(status=Status.SKIPPED, reason=f"the limit of {time_limit_s:g} s was used up before it")
                outcomes[name] = {"numerics": late}
                continue
            say(f"checking {name}")
            outcomes[name] = _look(name, context)
    case = plan_case("notebook", workload, {}, context.place)
    settings = make_settings("quick", launches=1, suites=(), run_id=case.id)
    settings = msgspec.structs.replace(settings, probes=PROBES)
    sound = tuple(name for name, found in outcomes.items() if found["numerics"].status is Status.OK)
    if sound and time.monotonic() - start > time_limit_s:
        for name in sound:
            reason = f"the limit of {time_limit_s:g} s was used up before it was timed"
            outcomes[name]["timing"] = Outcome(status=Status.SKIPPED, reason=reason)
    elif sound:
        say(f"timing {', '.join(sound)}")
        context.case, context.settings = case, settings
        with without_cache():
            launch = time_launch({name: context.prepare(name) for name in sound}, context)
        for name in sound:
            outcomes[name]["timing"] = summarise([[launch]], name, case.baseline)
    return Measurement(
        case=case,
        record=CaseRecord(
            id=case.id,
            name=case.name,
            started=started,
            elapsed_s=round(time.monotonic() - start, 3),
            launches=1,
            variants=tuple(VariantRecord(name=name, outcomes=found) for name, found in outcomes.items()),
            notes=(IN_PROCESS, UNWRAPPED) if jitted else (IN_PROCESS,),
            statistics_version=VERSION,
        ),
        environment=describe_environment(jax),
        settings=settings,
    )


def _check_options(modes: Sequence[str], tolerance: float | None) -> None:
    if isinstance(modes, str) or not modes:
        raise ValueError(f"modes is a list of some of {', '.join(MODES)}; got {modes!r}")
    for index, mode in enumerate(modes):
        if mode not in MODES:
            raise ValueError(f"no mode '{mode}'; modes are {', '.join(MODES)}")
        if mode in modes[:index]:
            raise ValueError(f"modes names '{mode}' twice")
    if tolerance is not None and not 0 <= tolerance < math.inf:
        raise ValueError(f"tolerance is a number from 0 on; got {tolerance!r}")


def is_watched() -> bool:
    """Whether a person is likely to look: at a terminal, or in a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


def print_progress(doing: str) -> None:
    """A line on stderr."""
    print(f"harness.measure: {doing}", file=sys.stderr, flush=True)


def ignore(doing: str) -> None:
    """Nobody looks."""


def _make_workload(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    params: dict[str, Any],
    expected: Any,
    modes: tuple[str, ...],
    tolerance: float | None,
) -> Workload:
    """The function as a workload; what eager code gave is the reference that every mode must give."""
    workload = Workload(
        name=getattr(function, "__name__", type(function).__name__),
        module="notebook",
        function=function,
        declaration=Declaration(
            inputs=lambda key: args, reference=lambda *inputs: expected, modes=modes, tolerance=tolerance
        ),
    )
    workload.implementation(partial(function, **params) if params else function, name=workload.name)
    return workload


def _look(variant: str, context: Context) -> dict[str, Outcome]:
    """Outcomes by probe. Eager code has been called for the reference: it has no first call to time, and no plan.

    Nothing that this process has compiled is forgotten: it is the user's own.
    """
    from harness.probes.compilation import compile_and_call
    from harness.probes.look_at_each import look_at_each
    from harness.probes.memory import read_plan
    from harness.probes.numerics import check

    looks = {"numerics": check}
    if context.workload.find_variant(variant)[1] != "eager":
        looks = {"compilation": compile_and_call, "memory": read_plan, **looks}
    return {probe: look_at_each(probe, look, (variant,), context).outcomes[variant] for probe, look in looks.items()}


def _make_context(workload: Workload, args: tuple[Any, ...]) -> Context:
    import jax

    from harness.probes import Context

    here = jax.default_backend()
    place = next((item for item in BACKENDS.values() if item.jax_backend == here), None)
    if place is None:
        raise ValueError(f"jax runs on '{here}', of which nothing is known here; backends are {', '.join(BACKENDS)}")
    arguments = tuple(jax.tree.map(jax.numpy.asarray, args))
    return Context(workload, {}, place, arguments, time.perf_counter, folder=None)
