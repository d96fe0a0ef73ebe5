"""Whether what a workload declares fits together; every error names the workload and what exists."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, NoReturn

from jaxmeter.harness.declare.declaration import (
    LEVELS,
    MIXED,
    MODES,
    ONE_COMPILED,
    STREAM_MODES,
    Compiles,
    Declaration,
    DeclarationError,
    Function,
    Implementation,
    Items,
    Levels,
    find_wanted_params,
    list_variants,
)
from jaxmeter.harness.machine.platforms import DEVICES
from jaxmeter.harness.metrics.metric import Unit
from jaxmeter.harness.metrics.table import METRICS, THROUGHPUT
from jaxmeter.harness.record.cases import ANSWER_FIGURES, FEWEST_QUEUED, MEASURED, NATIVE, Param, Published, Reported
from jaxmeter.harness.record.outcomes import KINDS

_FUNCTIONS: dict[str, Callable[[Any], bool]] = {
    "a generator": inspect.isgeneratorfunction,
    "an asynchronous generator": inspect.isasyncgenfunction,
    "a coroutine": inspect.iscoroutinefunction,
}
_RESULTS: dict[str, Callable[[Any], bool]] = {
    "a generator": inspect.isgenerator,
    "an asynchronous generator": inspect.isasyncgen,
    "a coroutine": inspect.iscoroutine,
}


def describe_unread_function(function: Callable[..., Any]) -> str | None:
    """Return why a function cannot be measured whose call only makes a generator or a coroutine; else None.

    A function that wraps one may read it, so nothing is unwrapped but a partial, by `inspect` itself.
    """
    return next((_describe(kind) for kind, is_kind in _FUNCTIONS.items() if is_kind(function)), None)


def describe_unread_result(result: Any) -> str | None:
    """Return why a result says nothing of its call, being a generator or a coroutine; else None."""
    return next((_describe(kind) for kind, is_kind in _RESULTS.items() if is_kind(result)), None)


def _describe(kind: str) -> str:
    return f"returns {kind}: nothing runs until it is read; return the arrays themselves, such as a list of them"


_NAME = re.compile(r"[\w.+-]+")
_ITEMS = re.compile(r"[^\W\d_][\w -]{0,29}")

_EXAMPLE_OF_ITEMS = "items=Items('tokens', lambda *, batch, length: batch * length)"

OF_LIMIT = ("backend",)
"""Arguments that limit() may have in addition to the params."""


def _refuse(workload: str, problem: str) -> NoReturn:
    raise DeclarationError(f"workload '{workload}': {problem}")


def check_name(name: object) -> None:
    """Raises DeclarationError where a workload's name is none that a case can have and a pattern can select."""
    if name is not None and not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise DeclarationError(
            f"workload: name is {name!r}; a name consists of letters, digits and the characters _ - . +"
        )


def check_implementation(
    workload: str, declaration: Declaration, before: Iterable[Implementation], new: Implementation
) -> None:
    """Raises DeclarationError where an implementation does not fit its workload.

    Args:
      workload: Its name.
      before: The implementations that it has.
    """
    if any(new.name == other.name for other in before):
        _refuse(workload, f"the implementation name '{new.name}' is taken")
    if (problem := describe_unread_function(new.function)) is not None:
        _refuse(workload, f"{new.name}() {problem}")
    if wrong := [mode for mode in new.modes if mode not in (*MODES, MIXED, NATIVE)]:
        _refuse(workload, f"no mode '{wrong[0]}'; modes are {', '.join((*MODES, MIXED))}")
    if declaration.stream and "aot" in new.modes:
        _refuse(
            workload,
            f"a stream cannot run in mode 'aot', whose program takes one type of "
            f"arguments; modes are {', '.join((*STREAM_MODES, MIXED))}",
        )
    _check_tolerance(workload, new.tolerance)
    carry = declaration.state.carry
    if idle := [name for name in new.donate if name not in carry]:
        _refuse(
            workload,
            f"{new.name}() donates '{idle[0]}', which carry does not list, so that its second call would find "
            f"it gone; carry has {', '.join(carry) or 'nothing'}",
        )
    _check_traps(workload, new.traps)
    _check_compiler_options(workload, new)
    _check_function(workload, declaration, f"{new.name}()", new.function, keyword_only=True)
    _check_function(workload, declaration, f"{new.name}()'s limit", new.limit, keyword_only=False, beside=OF_LIMIT)


def check_declaration(
    workload: str, declaration: Declaration, arguments: Sequence[str], implementations: Sequence[Implementation]
) -> None:
    """Raises DeclarationError where names do not fit together, once all implementations are there.

    Args:
      workload: Its name.
      arguments: Names of the positional arguments of its function.
    """
    _check_items(workload, declaration)
    _check_functions(workload, declaration, implementations)
    if declaration.level not in LEVELS:
        _refuse(workload, f"no level '{declaration.level}'; levels are {', '.join(LEVELS)}")
    if declaration.measures not in MEASURED:
        _refuse(workload, f"measures is {declaration.measures!r}; it must be one of {', '.join(MEASURED)}")
    for what, names in (("carry", declaration.state.carry), ("host", declaration.needs.host)):
        if unknown := [name for name in names if name not in arguments]:
            _refuse(
                workload,
                f"{what} names the argument '{unknown[0]}', which "
                f"{workload}() does not have; it has {', '.join(arguments) or 'none'}",
            )
    _check_params(workload, declaration, implementations)
    check_names(workload, declaration, "representative", declaration.representative)
    _check_tolerance(workload, declaration.tolerance)
    _check_queued(workload, declaration.queued)
    _check_traps(workload, declaration.traps)
    for claim in declaration.published:
        _check_claim(workload, declaration, claim)
    for report in declaration.reported:
        _check_report(workload, declaration, report)
    answer = declaration.answer
    if answer is not None:
        check_names(workload, declaration, "the answer", answer.at)
        if answer.metric not in METRICS:
            _refuse(workload, f"no metric '{answer.metric}' to answer with; metrics are {', '.join(METRICS)}")
        if METRICS[answer.metric].exponent_of is not None:
            _refuse(workload, f"the metric '{answer.metric}' is of all cases, and one case answers; name another")
        if answer.figure not in ("", *ANSWER_FIGURES):
            _refuse(workload, f"no figure '{answer.figure}' for an answer; figures are {', '.join(ANSWER_FIGURES)}")
        if answer.metric == THROUGHPUT and declaration.items is None:
            _refuse(workload, f"it answers with '{THROUGHPUT}' and has no items=; declare {_EXAMPLE_OF_ITEMS}")
    counted = [item for item in implementations if "jit" in item.modes and item.compiles is None]
    if declaration.compiles is not None and not counted:
        _refuse(
            workload,
            f"compiles= counts what its jit variants compile, and it has none; declare it "
            f"on the implementation that is meant, @{workload}.implementation(compiles=…), or add mode 'jit'",
        )
    wanted = [] if declaration.baseline is None else [(declaration.baseline, "the baseline")]
    wanted += [(figure.variant, "published") for claim in declaration.published for figure in claim.figures]
    wanted += [(variant, "the answer") for variant in (() if answer is None else answer.variants)]
    variants = list_variants(implementations)
    for variant, role in wanted:
        if variant not in variants:
            _refuse(workload, f"no variant '{variant}' to be {role}; variants are {', '.join(variants)}")


def check_names(workload: str, declaration: Declaration, what: str, names: Iterable[str]) -> None:
    """Raises DeclarationError where a name is none of the params."""
    if unknown := [name for name in names if name not in declaration.params]:
        _refuse(
            workload,
            f"{what} names '{unknown[0]}', which params does not list; "
            f"params has {', '.join(declaration.params) or 'nothing'}",
        )


def check_item_count(workload: str, unit: str, count: object, params: Mapping[str, Param] | None = None) -> int:
    """Return the number of items that a call processes.

    Args:
      params: Of the case; None where all cases have the same number.
    Raises:
      DeclarationError: It is not an integer, or less than 1.
    """
    if isinstance(count, bool) or not isinstance(count, Integral) or count < 1:
        where = f" with {dict(params)}" if params else ""
        _refuse(workload, f"items= counts {count!r} {unit}{where}; a call's number of items must be an integer ≥ 1")
    return int(count)


def _check_items(workload: str, declaration: Declaration) -> None:
    items = declaration.items
    if items is None:
        return
    if not isinstance(items, Items):
        _refuse(workload, f"items is {items!r}; it must be an Items, such as {_EXAMPLE_OF_ITEMS}")
    unit: object = items.unit
    if not (isinstance(unit, str) and _ITEMS.fullmatch(unit)):
        _refuse(
            workload,
            f"items are called {unit!r}; their name must begin with a letter and have at most 30 letters, "
            f"digits, spaces or hyphens, such as 'tokens', which is shown as tokens/s",
        )
    if not callable(items.count):
        check_item_count(workload, items.unit, items.count)


def _check_functions(workload: str, declaration: Declaration, implementations: Iterable[Implementation]) -> None:
    _check_function(workload, declaration, "inputs()", declaration.inputs, keyword_only=True)
    _check_function(workload, declaration, "cost()", declaration.cost, keyword_only=False)
    _check_function(workload, declaration, "compare()", declaration.compare, keyword_only=True, beside=("inputs",))
    if callable(declaration.reference):
        _check_function(workload, declaration, "reference()", declaration.reference, keyword_only=True)
    caching, needs = declaration.caching, declaration.needs
    for what, changed in (("new_shape", caching.new_shape), ("new_static", caching.new_static)):
        if callable(changed):
            _check_function(workload, declaration, f"{what}()", changed, keyword_only=False)
        else:
            check_names(workload, declaration, what, changed or {})
    budgets: tuple[Compiles | None, ...] = (declaration.compiles, *(item.compiles for item in implementations))
    for what, value in (
        ("items", None if declaration.items is None else declaration.items.count),
        ("devices", needs.devices),
        ("config", needs.config),
        *(("compiles", budget) for budget in budgets),
    ):
        if callable(value):
            _check_function(workload, declaration, f"{what}()", value, keyword_only=False)


def _check_params(workload: str, declaration: Declaration, implementations: Iterable[Implementation]) -> None:
    params = declaration.params
    taken = {
        name
        for function in (declaration.inputs, *(item.function for item in implementations))
        for name in find_wanted_params(function, params)
    }
    # A param may be there to make the processes differ.
    for set_up in (declaration.needs.devices, declaration.needs.config):
        if callable(set_up):
            taken |= set(find_wanted_params(set_up, params, keyword_only=False))
    if unused := [name for name in params if name not in taken]:
        _refuse(
            workload,
            f"neither inputs() nor an implementation takes the param '{unused[0]}', so its "
            f"cases would differ only in name; take it as a keyword-only argument, or leave it out",
        )
    for name, values in params.items():
        named = values.by_device if isinstance(values, Levels) else ()
        if unknown := [device for device in named if device not in DEVICES]:
            _refuse(
                workload,
                f"by_device of the param '{name}' names '{unknown[0]}', which there is not; "
                f"devices are {', '.join(DEVICES)}",
            )


def _check_tolerance(workload: str, tolerance: object) -> None:
    if tolerance is not None and not (isinstance(tolerance, Real) and float(tolerance) >= 0):
        _refuse(
            workload,
            f"tolerance is {tolerance!r}; it is a number, 0 or more, such as 1e-5: the largest error allowed, "
            f"relative to the reference's largest entry; without it, formats and conditioning decide",
        )


def _check_queued(workload: str, queued: object) -> None:
    if queued is not None and not (type(queued) is int and queued >= FEWEST_QUEUED):
        _refuse(workload, f"queued is {queued!r}; it must be an integer of {FEWEST_QUEUED} or more")


def _check_traps(workload: str, kinds: Sequence[str]) -> None:
    if isinstance(kinds, str):
        _refuse(workload, f"traps is the text {kinds!r}; it must be a tuple of kinds: traps=({kinds!r},)")
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        _refuse(workload, f"no trap '{unknown[0]}' to declare; traps are {', '.join(KINDS)}")


def _check_compiler_options(workload: str, new: Implementation) -> None:
    options: Any = new.compiler_options
    what = f"compiler_options of {new.name}()"
    if not isinstance(options, Mapping):
        _refuse(
            workload, f'{what} is {options!r}; it is a mapping: compiler_options={{"xla_cpu_enable_fast_math": True}}'
        )
    for name, value in options.items():
        if not (isinstance(name, str) and name.isidentifier()):
            _refuse(workload, f"{what} names {name!r}; a name is as in XLA_FLAGS, without its dashes: 'xla_…'")
        if not isinstance(value, Param):
            _refuse(workload, f"{what}: {name} is {value!r}; a value is a truth value, a number or a text")
    if options and (without := [mode for mode in new.modes if mode not in ONE_COMPILED]):
        _refuse(
            workload,
            f"{new.name}() has compiler_options, and mode '{without[0]}' has no one program to compile with them; "
            f"declare modes=('jit',), and '{without[0]}' as an implementation without them",
        )


def _check_claim(workload: str, declaration: Declaration, claim: Published) -> None:
    _check_place(workload, declaration, f"published at {claim.source}", claim.at)
    if unknown := [figure.metric for figure in claim.figures if figure.metric not in METRICS]:
        _refuse(workload, f"no metric '{unknown[0]}' to be published; metrics are {', '.join(METRICS)}")


def _check_report(workload: str, declaration: Declaration, report: Reported) -> None:
    _check_place(workload, declaration, f"reported by {report.source}", report.at)
    metric = METRICS.get(report.metric)
    if metric is None or metric.unit is not Unit.SECONDS:
        times = ", ".join(name for name, entry in METRICS.items() if entry.unit is Unit.SECONDS)
        _refuse(workload, f"'{report.metric}' is reported, which is not a time; times are {times}")
    if not 0 < report.factor < math.inf or report.factor == 1:
        _refuse(workload, f"reported factor {report.factor}; it is times as long, above 0 and not 1")


def _check_place(workload: str, declaration: Declaration, what: str, at: Mapping[str, Param]) -> None:
    check_names(workload, declaration, what, (name for name in at if name != "backend"))
    if (device := at.get("backend", DEVICES[0])) not in DEVICES:
        _refuse(workload, f"{what}: no backend '{device}'; backends are {', '.join(DEVICES)}")


def _check_function(
    workload: str,
    declaration: Declaration,
    what: str,
    function: Function | None,
    *,
    keyword_only: bool,
    beside: Collection[str] = (),
) -> None:
    known: dict[str, Param | None] = {**dict.fromkeys(declaration.params), **dict.fromkeys(beside)}
    for name in () if function is None else find_wanted_params(function, known, keyword_only=keyword_only):
        if name not in known:
            _refuse(
                workload,
                f"{what} asks for '{name}', which params does not list; "
                f"params has {', '.join(declaration.params) or 'nothing'}",
            )
