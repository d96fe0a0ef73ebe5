"""Made-up raw processes: what one process would have measured."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from jaxmeter.harness.record import SCHEMA_VERSION, Block, CalibrationLoop, Load, ProcessRecord, VariantSamples
from jaxmeter.harness.record.processes import DeviceState

WALL_S = 0.25
CLEAN, NOISY = 0.0, 0.5
"""Share of a block's wall time spent waiting for a core."""


def block(
    sample_s: float,
    *,
    wait: float | None = CLEAN,
    pass_number: int = 0,
    wall_s: float = WALL_S,
    parallel: float = 1.0,
    calibration_s: float | None = None,
) -> Block:
    """A block whose time is `sample_s`, with one interrupted sample; its other times are shares."""
    return Block(
        pass_number=pass_number,
        samples_s=(*[sample_s] * 3, 64 * sample_s),
        wall_s=wall_s,
        wait_s=None if wait is None else wait * wall_s,
        cpu_s=parallel * wall_s,
        steal_s=None,
        involuntary_switches=0,
        calibration_s=calibration_s,
    )


def variant(
    name: str,
    *blocks: tuple[float, float | None],
    return_s: tuple[float, ...] = (1e-6,),
    steady: bool = True,
    wall_s: float = WALL_S,
    isolated_s: tuple[float, ...] = (),
    waited_s: tuple[float, ...] = (),
    queued_s: tuple[float, ...] = (),
    cores: float = 2,
    **of_block: float | None,
) -> VariantSamples:
    """A variant's process from (time, wait) per block."""
    return VariantSamples(
        variant=name,
        cores=cores,
        calls=1,
        warmup_s=(1.0,),
        steady=steady,
        blocks=tuple(
            block(sample_s, wait=wait, pass_number=pass_number, wall_s=wall_s, **of_block)
            for pass_number, (sample_s, wait) in enumerate(blocks)
        ),
        return_s=return_s,
        isolated_s=isolated_s,
        waited_s=waited_s,
        queued_s=queued_s,
    )


def process(
    *variants: VariantSamples,
    index: int = 0,
    calibrations: tuple[CalibrationLoop, ...] = (),
    device_states: tuple[DeviceState, ...] = (),
    load: Load | None = None,
) -> ProcessRecord:
    """One process that timed these variants; where it tells nothing of the load, waits count."""
    return ProcessRecord(
        schema_version=SCHEMA_VERSION,
        case="sample",
        index=index,
        seed=index,
        started="2026-01-02T03:04:05Z",
        variants=variants,
        calibrations=calibrations,
        device_states=device_states,
        load=load,
    )


def load(
    *, parallel: float = 1.0, others: float | None = 0.0, stolen: float | None = None, throttled: float | None = None
) -> Load:
    """What the machine ran during a process of 2 s; all in cores."""

    def of_wall(share: float | None) -> float | None:
        return None if share is None else 2.0 * share

    return Load(
        wall_s=2.0,
        cpu_s=2.0 * parallel,
        machine_s=None if others is None else 2.0 * (parallel + others),
        steal_s=of_wall(stolen),
        throttled_s=of_wall(throttled),
    )


def calibration(*samples_s: float, name: str = "alu", identity: str = "alu 1") -> CalibrationLoop:
    """A calibration loop's samples."""
    return CalibrationLoop(name=name, identity=identity, samples_s=samples_s)


def beside(
    calibrations_s: Sequence[float | None], *samples_s: float, name: str = "a", **of_block: float
) -> VariantSamples:
    """A variant's quiet blocks, a calibration loop beside each."""
    made = variant(name, *clean(*samples_s), **of_block)
    blocks = zip(made.blocks, calibrations_s, strict=True)
    return structs.replace(
        made, blocks=tuple(structs.replace(one, calibration_s=calibration_s) for one, calibration_s in blocks)
    )


def clean(*samples_s: float) -> list[tuple[float, float | None]]:
    """Quiet blocks."""
    return [(sample_s, CLEAN) for sample_s in samples_s]


def noisy(*samples_s: float) -> list[tuple[float, float | None]]:
    """Blocks whose threads waited for a core."""
    return [(sample_s, NOISY) for sample_s in samples_s]
