"""Made-up raw launches: what one process would have measured."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from harness.record import SCHEMA_VERSION, Block, Canary, LaunchRecord, Load, VariantLaunch
from harness.record.launches import DeviceState

WALL_S = 0.25
CLEAN, DISTURBED = 0.0, 0.5
"""Share of a block's wall time spent waiting for a core."""


def block(
    sample_s: float,
    *,
    wait: float | None = CLEAN,
    sweep: int = 0,
    wall_s: float = WALL_S,
    parallel: float = 1.0,
    canary_s: float | None = None,
) -> Block:
    """A block whose median sample is `sample_s`; all else but the canary are shares of its wall time."""
    return Block(
        sweep=sweep,
        samples_s=(sample_s, sample_s, 64 * sample_s),
        wall_s=wall_s,
        wait_s=None if wait is None else wait * wall_s,
        cpu_s=parallel * wall_s,
        steal_s=None,
        involuntary_switches=0,
        canary_s=canary_s,
    )


def variant(
    name: str,
    *blocks: tuple[float, float | None],
    dispatch_s: tuple[float, ...] = (1e-6,),
    steady: bool = True,
    wall_s: float = WALL_S,
    solo_s: tuple[float, ...] = (),
    cores: float = 2,
    **of_block: float | None,
) -> VariantLaunch:
    """A variant's launch from (median sample, wait) per sweep."""
    return VariantLaunch(
        variant=name,
        cores=cores,
        calls=1,
        warmup_s=(1.0,),
        steady=steady,
        blocks=tuple(
            block(sample_s, wait=wait, sweep=sweep, wall_s=wall_s, **of_block)
            for sweep, (sample_s, wait) in enumerate(blocks)
        ),
        dispatch_s=dispatch_s,
        solo_s=solo_s,
    )


def launch(
    *variants: VariantLaunch,
    index: int = 0,
    canaries: tuple[Canary, ...] = (),
    device_states: tuple[DeviceState, ...] = (),
    load: Load | None = None,
) -> LaunchRecord:
    """One process that timed these variants; where it tells nothing of the load, waits count."""
    return LaunchRecord(
        schema_version=SCHEMA_VERSION,
        case="sample",
        index=index,
        seed=index,
        started="2026-01-02T03:04:05Z",
        variants=variants,
        canaries=canaries,
        device_states=device_states,
        load=load,
    )


def load(
    *, parallel: float = 1.0, others: float | None = 0.0, stolen: float | None = None, throttled: float | None = None
) -> Load:
    """What the machine ran during a launch of 2 s; all in cores."""

    def of_wall(share: float | None) -> float | None:
        return None if share is None else 2.0 * share

    return Load(
        wall_s=2.0,
        cpu_s=2.0 * parallel,
        machine_s=None if others is None else 2.0 * (parallel + others),
        steal_s=of_wall(stolen),
        throttled_s=of_wall(throttled),
    )


def canary(*samples_s: float, name: str = "alu", identity: str = "alu 1") -> Canary:
    """A canary's samples."""
    return Canary(name=name, identity=identity, samples_s=samples_s)


def beside(canaries_s: Sequence[float | None], *samples_s: float, name: str = "a", **of_block: float) -> VariantLaunch:
    """A variant's undisturbed blocks, a canary beside each."""
    made = variant(name, *clean(*samples_s), **of_block)
    blocks = zip(made.blocks, canaries_s, strict=True)
    return structs.replace(made, blocks=tuple(structs.replace(one, canary_s=canary_s) for one, canary_s in blocks))


def clean(*samples_s: float) -> list[tuple[float, float | None]]:
    """Undisturbed blocks."""
    return [(sample_s, CLEAN) for sample_s in samples_s]


def disturbed(*samples_s: float) -> list[tuple[float, float | None]]:
    """Blocks whose threads waited for a core."""
    return [(sample_s, DISTURBED) for sample_s in samples_s]
