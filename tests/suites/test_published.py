"""Every figure that the suites set out to stand beside has its claim."""

import pytest

from jaxmeter import Figure, Published
from jaxmeter.harness.declare.catalogue import DEFAULT_SUITES, find_suites
from jaxmeter.suites.published import at_both_sizes

CLAIMS = [
    claim
    for suite in find_suites((DEFAULT_SUITES,))
    for workload in suite.workloads
    for claim in workload.declaration.published
]

FIGURES = {
    "JAX in Action, listing 5.2": (786e-6, 132e-6),
    "JAX in Action, listing 5.3": (146e-6,),
    "JAX in Action, listing 5.4": (791e-6, 1.81e-3, 165e-6),
    "JAX in Action, listing 5.5": (2.74e-3, 872e-6, 437e-6, 27.1e-6),
    "a notebook on jax.jit: SELU": (302e-6, 61.3e-6, 13.4e-6, 121e-6),
    "a notebook on jax.jit: placement": (138e-6, 1.47e-3, 22.3e-6, 858e-6, 793e-6, 99.6e-6, 1.44e-3, 47.1e-6),
    "JAX in Action, figure 1.3": (49.8e-3, 59.5e-3, 10.5e-3, 1.87e-3, 0.649e-3),
    '"Hello JAX" notes': (598e-6, 19.5e-6),
    "JAX in Action, listings 3.18 and 3.19": (0.770e-3, 4.33e-3),
    '"JAX Speed Test": toy epoch': (65.7e-3, 2.36),
    '"JAX Speed Test": CNN epoch': (7.45, 29.0),
    '"JAX Speed Test": compile cache': (2,),
    "JAX in Action, chapter 2": (32.6, 1.69, 2.15, 6.3, 2.06),
    "Chavdarova": (2.97, 5.99, 3.29),
    "JAX in Action, chapter 4": (29.9e-3, 17.8e-3),
    "JAX in Action, listings 5.21 and 5.22": (143.0, 0.213, 30_000, 1),
    "JAX in Action, chapter 5": (2.0,),
}


@pytest.mark.parametrize("row", FIGURES)
def test_every_published_figure_is_part_of_a_claim(row):
    claimed = {figure.value for claim in CLAIMS for figure in claim.figures}

    assert [value for value in FIGURES[row] if value not in claimed] == []


@pytest.mark.parametrize(
    ("figure", "told"),
    [
        (4.33e-3, "150 ms on a CPU and 4.19 ms on a TPU v2"),
        (3.29, "the first of PyTorch took 3.66 s"),
    ],
)
def test_what_has_no_ratio_here_is_told(figure, told):
    """Times of other devices, of which only one each was published, and a peer's first call, which is not measured."""
    claims = [claim for claim in CLAIMS if claim.figure.value == figure]

    assert claims
    assert all(told in claim.timed for claim in claims)


def test_a_claim_stands_beside_its_own_size_and_beside_a_shorter_case_that_says_what_it_lacks():
    claim = Published(
        source="a book",
        device="a GPU",
        timed="an epoch",
        figure=Figure("f:jit", 1.0),
        differs="a loader",
        at={"network": "a"},
    )

    short, whole = at_both_sizes(
        claim, whole={"n": 100}, short={"n": 7}, has="7 of its 100 steps", undecided="too short"
    )

    assert (short.at, short.differs, short.undecided) == (
        {"network": "a", "n": 7},
        "7 of its 100 steps; a loader",
        "too short",
    )
    assert (whole.at, whole.differs, whole.undecided) == ({"network": "a", "n": 100}, "a loader", "")


@pytest.mark.parametrize(
    ("figure", "sizes"),
    [
        (29.0, {2 * 128, 351 * 128}),
        (2.36, {1_000, 8_000}),
        (2.15, {7, "epoch"}),
        (2.97, {7, "epoch"}),
        (32.6, {7, "epoch"}),
        (6.3, {7, "epoch"}),
    ],
)
def test_a_figure_of_training_meets_its_own_size_with_full(figure, sizes):
    found = [claim for claim in CLAIMS if figure in {one.value for one in claim.figures}]

    assert {next(claim.at[name] for name in ("batches", "images", "n") if name in claim.at) for claim in found} == sizes
