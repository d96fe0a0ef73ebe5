"""Example figures, modelled on the pages of a report."""

from jaxmeter.harness.metrics.metric import Unit
from jaxmeter.reporting.view import page_model as drawn

TIME = drawn.Axis("time of a call", Unit.SECONDS, is_log=True)


def mark(
    value: float,
    hue: drawn.Hue = drawn.Hue.CPU,
    *,
    spread: float = 0.0,
    variant: str = "",
    is_doubtful: bool = False,
    is_reference: bool = False,
    dots: tuple[float, ...] = (),
) -> drawn.Mark:
    """Return a mark whose interval reaches from value / (1 + spread) to value * (1 + spread)."""
    low, high = (value / (1 + spread), value * (1 + spread)) if spread else (None, None)
    return drawn.Mark(drawn.Estimate(value, low, high, is_doubtful, dots), hue, f"{value:g}", variant, is_reference)


def jit() -> drawn.Points:
    """Return eager and jit, a row a workload and device."""
    rows = (
        ("selu, 10⁴ f32", drawn.Hue.CPU, 1.8e-5, 2.6e-5, "2.2× [1.9, 2.5]"),
        ("selu, 10⁴ f32", drawn.Hue.GPU, 2.5e-5, 7e-5, "8.0× [6.3, 10]"),
        ("selu, 10⁸ bf16", drawn.Hue.GPU, 5e-5, 1.1e-4, "4.9× [4.7, 5.0]"),
        ("MLP step, batch 32, f32", drawn.Hue.CPU, 7.8e-4, 2.1e-2, "27× [25, 30]"),
        ("MLP step, batch 32, f32", drawn.Hue.GPU, 1.3e-4, 2.7e-2, "213× [194, 233]"),
        ("CNN forward, batch 8, f32", drawn.Hue.CPU, 1.6e-3, 9e-3, "5.6× [4.7, 6.7]"),
        ("CNN epoch, 256 images, f32", drawn.Hue.CPU, 0.26, 0.33, "1.26× [1.21, 1.32]"),
    )
    return drawn.Points(
        "eager and jit",
        drawn.Axis("time", Unit.SECONDS, is_log=True),
        tuple(drawn.PointRow(a, (mark(j, h), mark(e, h, is_reference=True)), note) for a, h, j, e, note in rows),
        note_title="speedup",
        mark_names=("jit", "eager"),
    )


def run_time() -> drawn.Curves:
    """Return seven curves of which two are in focus, and two end early."""
    sizes = (100, 1000, 10000)
    values = {
        "loop, list": (1.4e-4, 1.3e-3), "jnp.cumsum": (7.8e-6, 3e-5, 1.5e-4), "fori_loop": (7.5e-6, 1.7e-5, 7e-5),
        "associative": (7.4e-6, 1.3e-5, 6.9e-5), "scan": (7.3e-6, 1e-5, 4.3e-5), "NumPy, host": (1.8e-6, 5e-6, 3.5e-5),
        "loop, stacked": (1.8e-5,),
    }  # fmt: skip
    curves = tuple(
        drawn.Curve(
            name,
            tuple(drawn.CurvePoint(x, mark(y, spread=0.05)) for x, y in zip(sizes, ys, strict=False)),
            in_focus=name in ("loop, list", "scan"),
            ending=drawn.Ending(sizes[len(ys)], "too large") if len(ys) < len(sizes) else None,
        )
        for name, ys in values.items()
    )
    return drawn.Curves(
        "run time over n", (drawn.CurvePanel(drawn.Axis("n", Unit.COUNT, is_log=True), TIME, curves, here=1000),)
    )


LEDGER = (drawn.Fill.DEVICE, drawn.Fill.TRANSFER, drawn.Fill.DISPATCH, drawn.Fill.HOST, drawn.Fill.IDLE)


def ledger() -> drawn.Stacks:
    """Return where the time of a step goes."""
    rows = (("MLP step, eager", drawn.Hue.CPU, (0.16, 0.01, 0.2, 0.62, 0.01), "20.9 ms"),
            ("CNN step, jit", drawn.Hue.CPU, (0.93, 0.0, 0.03, 0.02, 0.02), "5.69 ms"),
            ("selu, jit", drawn.Hue.GPU, (0.46, 0.0, 0.2, 0.34, 0.0), "210 µs"))  # fmt: skip
    return drawn.Stacks(
        "where the time goes",
        drawn.Axis("share of the step, traced", Unit.SHARE),
        tuple(drawn.StackRow(a, h, parts(s, LEDGER, [f"{x:.0%}" for x in s]), total) for a, h, s, total in rows),
        has_legend=True,
    )


def parts(amounts: tuple[float, ...], fills: tuple[drawn.Fill, ...], names: list[str]) -> tuple[drawn.StackPart, ...]:
    """Return the parts of a stack."""
    return tuple(drawn.StackPart(n, a, f, f"{n}: {a:g}") for a, f, n in zip(amounts, fills, names, strict=True))


def changes() -> drawn.Forest:
    """Return five confirmed changes."""
    rows = (
        ("10 operations, jit", 0.56, "44 % faster [43, 46]"),
        ("fusion, eager", 1.25, "25 % slower [21, 28]"),
        ("attention 128, plain", 0.81, "19 % faster [16, 22]"),
        ("10 operations, loop", 1.11, "11 % slower [7.5, 14]"),
    )
    return drawn.Forest(
        "confirmed changes",
        drawn.Axis("change of time", Unit.RATIO, is_log=True),
        tuple(
            drawn.ForestRow(a, mark(v, drawn.Hue.SLOWER if v > 1 else drawn.Hue.FASTER, spread=0.03), n)
            for a, v, n in rows
        ),
    )


def roofline() -> drawn.Roofline:
    """Return rates below the roof of a CPU."""
    dots = (("matmul 2 048", 341, 2e11), ("attention 1 024", 20, 4e10), ("CNN step", 9, 4.2e10), ("selu 10⁶", 0.5, 3e9))
    return drawn.Roofline(
        "roofline of the CPU",
        drawn.Axis("FLOP per byte", Unit.COUNT, is_log=True),
        drawn.Axis("rate", Unit.FLOP_PER_SECOND, is_log=True),
        tuple(drawn.Dot(x, mark(y), name) for name, x, y in dots),
        (drawn.Roof(22e9, 268e9, "268 GFLOP/s and 22 GB/s, float32, measured"),),
    )


EXAMPLES: dict[str, drawn.Figure] = {make.__name__: make() for make in (jit, run_time, ledger, changes, roofline)}
WIDTHS = (268, 334, 374, 572)
"""A card, a phone, a panel, and a wide card."""
