"""The first screen: which devices, what changed, how far to trust the numbers."""

import msgspec
import pytest

from jaxmeter.document.model import Tone
from jaxmeter.harness.record import Outcome, Status
from jaxmeter.reporting.view.cards import MOST_CHANGES
from jaxmeter.reporting.view.overview import MOST_DEVICES
from jaxmeter.reporting.view.page_model import Forest, Hue
from tests import samples
from tests.reporting.compare import changed
from tests.reporting.compare.changed import AFTER, BEFORE, plain, replayed
from tests.reporting.views import page_of


def run_on(backend, *, jax="0.10.0", machine=""):
    environment = samples.environment(packages={"jax": jax})
    return samples.run(run_id=f"{machine}{backend}{jax}", backend=backend, machine=machine, environment=environment)


def heading_of(*runs):
    return page_of(*runs).overview.heading


def test_the_heading_names_the_release_of_jax_and_each_kind_of_device():
    assert heading_of(run_on("cpu")) == "JAX 0.10.0 on a CPU"
    assert heading_of(run_on("cpu"), run_on("gpu")) == "JAX 0.10.0 on a CPU and a GPU"
    assert heading_of(run_on("cpu"), run_on("gpu", jax="0.11.0")) == "JAX on a CPU (0.10.0) and a GPU (0.11.0)"
    assert heading_of(run_on("cpu", machine="a"), run_on("cpu", machine="b")) == "JAX 0.10.0 on 2 CPUs"
    releases = (run_on("cpu", jax=jax) for jax in ("0.10.0", "0.4.31", "0.9.2"))
    assert heading_of(*releases) == "JAX 0.4.31 to 0.10.0 on a CPU"


def test_of_many_machines_a_few_are_named_and_the_others_counted():
    overview = page_of(*(run_on("cpu", machine=f"m{number}") for number in range(MOST_DEVICES + 2))).overview

    assert len(overview.devices) == MOST_DEVICES
    assert overview.heading.endswith("and 2 more devices")


def test_each_device_has_its_colour_in_every_fact():
    overview = page_of(run_on("cpu"), run_on("gpu")).overview

    assert {device.hue for device in overview.devices} == {Hue.CPU, Hue.GPU}
    of_devices = [fact for fact in overview.trust if len(fact.values) == 2]
    assert len(of_devices) == 3
    assert all({value.hue for value in fact.values} == {Hue.CPU, Hue.GPU} for fact in of_devices)


@pytest.mark.parametrize(("ratio", "tone", "hue"), [(1.5, Tone.WORSE, Hue.SLOWER), (0.5, Tone.GOOD, Hue.FASTER)])
def test_a_confirmed_change_is_drawn_with_its_interval_and_its_direction(ratio, tone, hue):
    card = page_of(plain(BEFORE), replayed(ratio)).overview.changed

    (row,) = card.figure.rows
    assert isinstance(card.figure, Forest)
    assert card.phrases[0].tone is tone
    assert row.mark.hue is hue
    assert row.mark.estimate.value == pytest.approx(ratio, rel=0.01)
    assert row.mark.estimate.low <= row.mark.estimate.value <= row.mark.estimate.high


def test_of_many_changes_the_largest_are_drawn_and_all_are_listed():
    ratios = {f"case{number}": 1.5 + number for number in range(MOST_CHANGES + 2)}
    before = changed.run(
        BEFORE,
        *(
            (changed.case(name), {f"{name}:jit": {"numerics": changed.checked(), "timing": changed.timed(1e-4)}})
            for name in ratios
        ),
    )
    singles = [replayed(ratio, name=name) for name, ratio in ratios.items()]
    after = msgspec.structs.replace(
        singles[0],
        manifest=msgspec.structs.replace(
            singles[0].manifest, cases=tuple(case for one in singles for case in one.manifest.cases)
        ),
        cases=tuple(case for one in singles for case in one.cases),
    )

    page = page_of(before, after)

    drawn = [row.mark.estimate.value for row in page.overview.changed.figure.rows]
    assert drawn == pytest.approx(sorted(ratios.values(), reverse=True)[:MOST_CHANGES], rel=0.01)
    assert [item.label for item in page.changed].count("slower") == len(ratios)


def test_what_is_only_suspected_is_counted_and_not_drawn():
    def timed(name, seconds):
        outcomes = {"numerics": changed.checked(name), "timing": changed.timed(seconds)}
        return changed.run(name, (changed.case("a", source=name), {"a:jit": outcomes}))

    card = page_of(timed(BEFORE, 1e-4), timed(AFTER, 2e-4)).overview.changed

    assert card.figure is None
    assert "1 suspected" in card.phrases[0].text
    assert card.phrases[0].tone is Tone.PLAIN


def test_a_failure_of_every_variant_leaves_a_card_with_its_reason():
    failed = dict.fromkeys(("f:eager", "f:jit"), Outcome(status=Status.FAILED, reason="no memory"))

    (card,) = page_of(samples.one_case(failed)).overview.cards

    assert (card.figure, card.is_answered) == (None, False)
    assert "no memory" in card.phrases[0].text
