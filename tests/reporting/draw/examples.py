"""Example figures, modelled on the pages of a report."""

from __future__ import annotations

from jaxmeter.harness.metrics.metric import Unit
from jaxmeter.reporting.view.figure_model import (
    Axis,
    Curve,
    CurvePanel,
    CurvePoint,
    Curves,
    Dot,
    Ending,
    Estimate,
    Figure,
    Fill,
    Forest,
    ForestRow,
    Hue,
    Limit,
    Mark,
    PointRow,
    Points,
    Roof,
    Roofline,
    StackPart,
    StackRow,
    Stacks,
)  # fmt: skip

TIME = Axis("time of a call", Unit.SECONDS, is_log=True)


def mark(
    value: float,
    hue: Hue = Hue.CPU,
    *,
    spread: float = 0.0,
    variant: str = "",
    is_doubtful: bool = False,
    is_reference: bool = False,
    dots: tuple[float, ...] = (),
) -> Mark:
    """Return a mark whose interval reaches from value / (1 + spread) to value * (1 + spread)."""
    low, high = (value / (1 + spread), value * (1 + spread)) if spread else (None, None)
    return Mark(Estimate(value, low, high, is_doubtful, dots), hue, f"{value:g}", variant, is_reference)


def jit() -> Points:
    """Return eager and jit, a row a workload and device."""
    rows = (
        ("selu, 10⁴ f32", Hue.CPU, 1.8e-5, 2.6e-5, "2.2× [1.9, 2.5]"),
        ("selu, 10⁴ f32", Hue.GPU, 2.5e-5, 7e-5, "8.0× [6.3, 10]"),
        ("selu, 10⁸ bf16", Hue.GPU, 5e-5, 1.1e-4, "4.9× [4.7, 5.0]"),
        ("MLP step, batch 32, f32", Hue.CPU, 7.8e-4, 2.1e-2, "27× [25, 30]"),
        ("MLP step, batch 32, f32", Hue.GPU, 1.3e-4, 2.7e-2, "213× [194, 233]"),
        ("CNN forward, batch 8, f32", Hue.CPU, 1.6e-3, 9e-3, "5.6× [4.7, 6.7]"),
        ("CNN epoch, 256 images, f32", Hue.CPU, 0.26, 0.33, "1.26× [1.21, 1.32]"),
    )
    return Points(
        "eager and jit",
        Axis("time", Unit.SECONDS, is_log=True),
        tuple(PointRow(a, (mark(j, h), mark(e, h, is_reference=True)), note) for a, h, j, e, note in rows),
        note_title="speedup",
        mark_names=("jit", "eager"),
    )


def queued() -> Points:
    """Return few variants on two devices."""
    rows = (("blocked", 5.1e-4, 6.3e-3), ("queued", 4.4e-4, 4.0e-3), ("one program", 1.4e-5, 1.7e-3))
    points = tuple(PointRow(a, (mark(c, spread=0.02), mark(g, Hue.GPU, spread=0.2))) for a, c, g in rows)
    return Points("100 calls", Axis("100 calls", Unit.SECONDS, is_log=True), points)


def how_fast() -> Points:
    """Return the variants of a case, with their processes."""
    rows = (("jit", Hue.CPU, 5.69e-3), ("donated", Hue.CPU, 5.85e-3), ("PyTorch, 23 Nov", Hue.CPU, 6.97e-3),
            ("jit", Hue.GPU, 5.12e-4), ("donated", Hue.GPU, 4.18e-4))  # fmt: skip
    return Points(
        "variants of the CNN step",
        Axis("time of a step; small dots: one process each", Unit.SECONDS, is_log=True),
        tuple(
            PointRow(
                label,
                (mark(v, h, spread=0.1, dots=(v * 0.9, v * 1.02, v * 1.2), is_doubtful=h == Hue.GPU, variant=label),),
                f"{v * 1e3:.3g} ms [{v * 900:.3g}, {v * 1100:.3g}]",
                is_context="PyTorch" in label,
            )
            for label, h, v in rows
        ),
    )


def batch() -> Curves:
    """Return two panels over the batch size, one with a peak."""
    sizes = (8, 16, 32, 64, 128, 256, 512)
    cnn, mlp = (
        (1.3e-3, 2.2e-3, 4.4e-3, 9e-3, 2.4e-2, 6e-2, 0.14),
        (1e-3, 1.1e-3, 1.3e-3, 1.6e-3, 2.3e-3, 3.6e-3, 6.7e-3),
    )
    up, down = (18e9, 30e9, 48e9, 72e9, 96e9, 118e9, 126e9), (36e9, 42e9, 42e9, 39e9, 30e9, 23e9, 21e9)

    def curve(name: str, values: tuple[float, ...]) -> Curve:
        return Curve(name, tuple(CurvePoint(x, mark(y)) for x, y in zip(sizes, values, strict=True)))

    x = Axis("batch", Unit.COUNT, is_log=True)
    return Curves(
        "step time and rate over the batch size",
        (
            CurvePanel(x, Axis("step time", Unit.SECONDS, is_log=True), (curve("CNN", cnn), curve("MLP", mlp))),
            CurvePanel(
                x,
                Axis("rate", Unit.FLOP_PER_SECOND, is_log=True),
                (curve("MLP", up), curve("CNN", down)),
                limits=(Limit(302e9, "float32 peak, measured"),),
            ),
        ),
    )


def run_time() -> Curves:
    """Return seven curves of which two are in focus, and two end early."""
    sizes = (100, 1000, 10000)
    values = {
        "loop, list": (1.4e-4, 1.3e-3), "jnp.cumsum": (7.8e-6, 3e-5, 1.5e-4), "fori_loop": (7.5e-6, 1.7e-5, 7e-5),
        "associative": (7.4e-6, 1.3e-5, 6.9e-5), "scan": (7.3e-6, 1e-5, 4.3e-5), "NumPy, host": (1.8e-6, 5e-6, 3.5e-5),
        "loop, stacked": (1.8e-5,),
    }  # fmt: skip
    curves = tuple(
        Curve(
            name,
            tuple(CurvePoint(x, mark(y, spread=0.05)) for x, y in zip(sizes, ys, strict=False)),
            in_focus=name in ("loop, list", "scan"),
            ending=Ending(sizes[len(ys)], "too large") if len(ys) < len(sizes) else None,
        )
        for name, ys in values.items()
    )
    return Curves("run time over n", (CurvePanel(Axis("n", Unit.COUNT, is_log=True), TIME, curves, here=1000),))


def peak_share() -> Curves:
    """Return shares of a peak, of two devices."""
    cpu = tuple(CurvePoint(x, mark(y, spread=0.05)) for x, y in ((128, 0.17), (512, 0.7), (2048, 0.75)))
    gpu = (CurvePoint(8192, mark(0.6, Hue.GPU, spread=0.25, is_doubtful=True)),)
    panel = CurvePanel(
        Axis("n", Unit.COUNT, is_log=True),
        Axis("share of peak", Unit.SHARE),
        (Curve("float32", cpu), Curve("bfloat16", gpu)),
        limits=(Limit(1.0, "peak"),),
    )
    return Curves("share of the peak", (panel,))


def releases() -> Curves:
    """Return a history over releases."""
    names = ("0.9.0.1", "0.9.1", "0.9.2", "0.10.0", "0.10.1", "0.10.2")
    points = tuple(CurvePoint(n + 1, mark(v, spread=0.04)) for n, v in enumerate((1, 0.56, 0.57, 0.57, 0.59, 0.6)))
    x = Axis("release of jax", Unit.COUNT, names=names)
    return Curves("history", (CurvePanel(x, Axis("against the first release", Unit.RATIO), (Curve("jit", points),)),))


LEDGER = (Fill.DEVICE, Fill.TRANSFER, Fill.DISPATCH, Fill.HOST, Fill.IDLE)


def ledger() -> Stacks:
    """Return where the time of a step goes."""
    rows = (("MLP step, eager", Hue.CPU, (0.16, 0.01, 0.2, 0.62, 0.01), "20.9 ms"),
            ("CNN step, jit", Hue.CPU, (0.93, 0.0, 0.03, 0.02, 0.02), "5.69 ms"),
            ("selu, jit", Hue.GPU, (0.46, 0.0, 0.2, 0.34, 0.0), "210 µs"))  # fmt: skip
    return Stacks(
        "where the time goes",
        Axis("share of the step, traced", Unit.SHARE),
        tuple(StackRow(a, h, parts(s, LEDGER, [f"{x:.0%}" for x in s]), total) for a, h, s, total in rows),
        has_legend=True,
    )


def parts(amounts: tuple[float, ...], fills: tuple[Fill, ...], names: list[str]) -> tuple[StackPart, ...]:
    """Return the parts of a stack."""
    return tuple(StackPart(n, a, f, f"{n}: {a:g}") for a, f, n in zip(amounts, fills, names, strict=True))


def memory() -> Stacks:
    """Return planned parts, measured peaks, and the memory that there is."""
    fills, names, mib = (Fill.FIRST, Fill.SECOND, Fill.THIRD), ["arguments", "outputs", "temporary"], 2.0**20
    rows = (("jit", Hue.CPU, (12.2, 12.3, 2.6), 27.6), ("donated", Hue.CPU, (12.2, 0.1, 7.1), 20.1),
            ("jit", Hue.GPU, (12.2, 12.3, 0.5), 37.4))  # fmt: skip
    return Stacks(
        "memory of the CNN step",
        Axis("memory: planned (bars) and measured peak", Unit.BYTES),
        tuple(
            StackRow(a, h, parts(tuple(x * mib for x in s), fills, names), f"{m} MiB", mark(m * mib, h))
            for a, h, s, m in rows
        ),
        limit=Limit(39 * mib, "largest on this device"),
    )


def stages() -> Stacks:
    """Return the stages of the first call."""
    fills, names = (Fill.FIRST, Fill.SECOND, Fill.THIRD, Fill.FOURTH), ["trace", "lower", "compile", "run"]
    rows = (
        ("CNN step", (0.11, 0.04, 0.74, 0.04)),
        ("loop of 100", (0.02, 0.01, 0.57, 0.0)),
        ("selu", (0.01, 0.02, 0.03, 0)),
    )
    return Stacks(
        "stages of the first call",
        Axis("CPU, cold caches", Unit.SECONDS),
        tuple(StackRow(a, Hue.CPU, parts(s, fills, names), f"{sum(s) * 1e3:.3g} ms") for a, s in rows),
    )


def changes() -> Forest:
    """Return five confirmed changes."""
    rows = (
        ("10 operations, jit", 0.56, "44 % faster [43, 46]"),
        ("fusion, eager", 1.25, "25 % slower [21, 28]"),
        ("attention 128, plain", 0.81, "19 % faster [16, 22]"),
        ("10 operations, loop", 1.11, "11 % slower [7.5, 14]"),
    )
    return Forest(
        "confirmed changes",
        Axis("change of time", Unit.RATIO, is_log=True),
        tuple(ForestRow(a, mark(v, Hue.SLOWER if v > 1 else Hue.FASTER, spread=0.03), n) for a, v, n in rows),
    )


def roofline() -> Roofline:
    """Return rates below the roof of a CPU."""
    dots = (("matmul 2 048", 341, 2e11), ("attention 1 024", 20, 4e10), ("CNN step", 9, 4.2e10), ("selu 10⁶", 0.5, 3e9))
    return Roofline(
        "roofline of the CPU",
        Axis("FLOP per byte", Unit.COUNT, is_log=True),
        Axis("rate", Unit.FLOP_PER_SECOND, is_log=True),
        tuple(Dot(x, mark(y), name) for name, x, y in dots),
        (Roof(22e9, 268e9, "268 GFLOP/s and 22 GB/s, float32, measured"),),
    )


EXAMPLES: dict[str, Figure] = {
    make.__name__: make()
    for make in (
        jit,
        queued,
        how_fast,
        batch,
        run_time,
        peak_share,
        releases,
        ledger,
        memory,
        stages,
        changes,
        roofline,
    )
}

WIDTHS = (268, 334, 374, 572)
"""A card, a phone, a panel, and a wide card."""
