"""Planned cases: a workload with one value of each param, at a platform, as data."""

from __future__ import annotations

from jaxmeter.harness.declare.declaration import NoReference
from jaxmeter.harness.declare.implementation import ONE_COMPILED
from jaxmeter.harness.declare.levels import call_with
from jaxmeter.harness.declare.workload import Workload
from jaxmeter.harness.machine.environment import recorded_options
from jaxmeter.harness.machine.platforms import Platform
from jaxmeter.harness.record import Param, PlannedCase, PlannedVariant
from jaxmeter.harness.record.layout import name_file


def plan_case(
    suite: str, workload: Workload, params: dict[str, Param], platform: Platform, question: str = ""
) -> PlannedCase:
    """A workload with one value of each param, as data.

    Args:
      question: Of the suite.
    """
    name, declared = name_case(workload.name, params, platform), workload.declaration
    source = workload.find_data_source()
    skips = [(item, item.find_skip(params, platform.device)) for item in workload.implementations]
    return PlannedCase(
        id=name_file(name),
        name=name,
        suite=suite,
        workload=workload.name,
        platform=platform.name,
        description=workload.description,
        params=params,
        definition=workload.hash_definition(),
        baseline=workload.baseline_variant,
        variants=tuple(
            PlannedVariant(
                name=f"{item.name}:{mode}",
                implementation=item.name,
                mode=mode,
                description=item.description,
                source=item.hash_source(),
                skip=None if skip is None else skip.reason,
                traced=skip is not None and skip.traced and mode in ONE_COMPILED,
                compiles=workload.find_compile_budget(f"{item.name}:{mode}", params),
                donates=item.donate if mode in ONE_COMPILED else (),
                compiler_options=recorded_options(item.compiler_options),
                raises=None if item.raises is None else item.raises.__name__,
            )
            for item, skip in skips
            for mode in item.modes
        ),
        cost=None if declared.cost is None else call_with(declared.cost, params),
        items=workload.count_items(params),
        items_unit="" if declared.items is None else declared.items.unit,
        no_reference=declared.reference.reason if isinstance(declared.reference, NoReference) else None,
        time_limit_s=declared.time_limit_s,
        new_shape=workload.find_changes(declared.caching.new_shape, params),
        new_static=workload.find_changes(declared.caching.new_static, params),
        default_threshold=declared.caching.default_threshold,
        represents_workload=workload.represents_workload(params),
        devices=workload.count_devices(params),
        config=workload.find_config(params),
        data=None if source is None else source.words,
        data_missing=None if source is None else source.missing,
        published=workload.find_published(params, platform.device),
        reported=workload.find_reported(params, platform.device),
        answer=declared.answer,
        question=question,
        queued=declared.queued,
        measures=declared.measures,
    )


def name_case(workload: str, params: dict[str, Param], platform: Platform) -> str:
    """`selu[dtype=float32,n=10000]`: params sorted by name; `…@tpu:v5e` where it is compiled for a target."""
    inside = ",".join(f"{name}={params[name]}" for name in sorted(params))
    target = "" if platform.measures else f"@{platform.name}"
    return f"{workload}[{inside}]{target}" if inside else f"{workload}{target}"
