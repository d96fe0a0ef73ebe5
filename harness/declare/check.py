"""Whether what a workload declares fits together; every error names the workload and what exists."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any

from harness.declare.implementation import MIXED, MODES, STREAM_MODES, Implementation
from harness.declare.levels import DeclarationError, wanted_names
from harness.machine.places import BACKENDS
from harness.record import NATIVE, Param
from harness.record.metrics import METRICS

if TYPE_CHECKING:
    from harness.declare.workload import Workload

OF_LIMIT = ("backend",)
"""What limit() may ask for beside the params."""


def check_implementation(workload: Workload, new: Implementation) -> None:
    """Raises DeclarationError where an implementation does not fit its workload."""
    where = f"workload '{workload.name}'"
    if any(new.name == other.name for other in workload.implementations):
        raise DeclarationError(f"{where}: the implementation name '{new.name}' is taken")
    if wrong := [mode for mode in new.modes if mode not in (*MODES, MIXED, NATIVE)]:
        raise DeclarationError(f"{where}: no mode '{wrong[0]}'; modes are {', '.join((*MODES, MIXED))}")
    if workload.stream and "aot" in new.modes:
        raise DeclarationError(
            f"{where}: a stream cannot run in mode 'aot', whose program takes one type of "
            f"arguments; modes are {', '.join((*STREAM_MODES, MIXED))}"
        )
    if idle := [name for name in new.donate if name not in workload.carry]:
        raise DeclarationError(
            f"{where}: {new.name}() donates '{idle[0]}', which carry does not list, so that its second call would find "
            f"it gone; carry has {', '.join(workload.carry) or 'nothing'}"
        )
    _check_params(workload, f"{new.name}()", new.function, keyword_only=True)
    _check_params(workload, f"{new.name}()'s limit", new.limit, keyword_only=False, beside=OF_LIMIT)


def check(workload: Workload) -> None:
    """Raises DeclarationError where names do not fit together. Called when the declaration is complete."""
    where = f"workload '{workload.name}'"
    _check_functions(workload)
    _check_arguments(workload)
    users = [workload.inputs, *(item.function for item in workload.implementations)]
    taken = {name for function in users for name in wanted_names(function, workload.params)}
    if unused := [name for name in workload.params if name not in taken and not _sets_up(workload, name)]:
        raise DeclarationError(
            f"{where}: neither inputs() nor an implementation takes the param '{unused[0]}', so its "
            f"cases would differ only in name; take it as a keyword-only argument, or leave it out"
        )
    check_names(workload, "representative", workload.representative)
    for claim in workload.published:
        check_names(workload, f"published at {claim.source}", (name for name in claim.at if name != "backend"))
        if (backend := claim.at.get("backend", "cpu")) not in BACKENDS:
            raise DeclarationError(
                f"{where}: published at backend '{backend}', which there is not; backends are {', '.join(BACKENDS)}"
            )
        if unknown := [figure.metric for figure in claim.figures if figure.metric not in METRICS]:
            raise DeclarationError(
                f"{where}: no metric '{unknown[0]}' to be published; metrics are {', '.join(METRICS)}"
            )
    counted = [item for item in workload.implementations if "jit" in item.modes and item.compiles is None]
    if workload.compiles is not None and not counted:
        raise DeclarationError(
            f"{where}: compiles= counts what its jit variants compile, and it has none; declare it "
            f"on the implementation that is meant, @{workload.name}.implementation(compiles=…), or add mode 'jit'"
        )
    wanted = [] if workload.baseline is None else [(workload.baseline, "the baseline")]
    wanted += [(figure.variant, "published") for claim in workload.published for figure in claim.figures]
    for variant, role in wanted:
        if variant not in workload.variants():
            raise DeclarationError(
                f"{where}: no variant '{variant}' to be {role}; variants are {', '.join(workload.variants())}"
            )


def _check_functions(workload: Workload) -> None:
    _check_params(workload, "inputs()", workload.inputs, keyword_only=True)
    _check_params(workload, "cost()", workload.cost, keyword_only=False)
    _check_params(workload, "compare()", workload.compare, keyword_only=True, beside=("inputs",))
    if callable(workload.reference):
        _check_params(workload, "reference()", workload.reference, keyword_only=True)
    for what, changed in (("new_shape", workload.new_shape), ("new_static", workload.new_static)):
        if callable(changed):
            _check_params(workload, f"{what}()", changed, keyword_only=False)
        else:
            check_names(workload, what, changed or {})
    budgets = (workload.compiles, *(item.compiles for item in workload.implementations))
    for what, value in (
        ("devices", workload.devices),
        ("config", workload.config),
        *(("compiles", budget) for budget in budgets),
    ):
        if callable(value):
            _check_params(workload, f"{what}()", value, keyword_only=False)


def _check_arguments(workload: Workload) -> None:
    for what, names in (("carry", workload.carry), ("host", workload.host)):
        if unknown := [name for name in names if name not in workload.arguments]:
            raise DeclarationError(
                f"workload '{workload.name}': {what} names the argument '{unknown[0]}', which "
                f"{workload.function.__name__}() does not have; it has {', '.join(workload.arguments) or 'none'}"
            )


def _sets_up(workload: Workload, param: str) -> bool:
    """Whether a param makes the processes differ."""
    return any(
        callable(one) and param in wanted_names(one, workload.params, keyword_only=False)
        for one in (workload.devices, workload.config)
    )


def check_names(workload: Workload, what: str, names: Iterable[str]) -> None:
    """Raises DeclarationError where a name is none of the params."""
    if unknown := [name for name in names if name not in workload.params]:
        raise DeclarationError(
            f"workload '{workload.name}': {what} names '{unknown[0]}', which params does not list; "
            f"params has {', '.join(workload.params) or 'nothing'}"
        )


def _check_params(
    workload: Workload,
    what: str,
    function: Callable[..., Any] | None,
    *,
    keyword_only: bool,
    beside: Collection[str] = (),
) -> None:
    known: dict[str, Param | None] = {**dict.fromkeys(workload.params), **dict.fromkeys(beside)}
    for name in () if function is None else wanted_names(function, known, keyword_only=keyword_only):
        if name not in known:
            raise DeclarationError(
                f"workload '{workload.name}': {what} asks for '{name}', which params does not list; "
                f"params has {', '.join(workload.params) or 'nothing'}"
            )
