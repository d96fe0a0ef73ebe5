"""Which process files hold what can have been measured."""

import math

import msgspec
import pytest

from jaxmeter.harness.metrics.plausibility import LONGEST_S, SHORTEST_S, is_sound
from tests.harness.raw import block, clean, process, variant

SOUND = process(variant("a:jit", *clean(1.0, 2.0)), variant("b:jit", *clean(1.0)))


def with_variant(**changes):
    """The process with its second variant changed."""
    first, second = SOUND.variants
    return msgspec.structs.replace(SOUND, variants=(first, msgspec.structs.replace(second, **changes)))


def with_block(**changes):
    return with_variant(blocks=(msgspec.structs.replace(block(1.0), **changes),))


def test_a_process_with_times_that_can_have_been_measured_is_sound():
    assert is_sound(SOUND)
    assert is_sound(with_block(samples_s=(SHORTEST_S, LONGEST_S)))


@pytest.mark.parametrize("value", [0.0, -1.0, SHORTEST_S / 2, LONGEST_S * 2, math.inf, math.nan])
@pytest.mark.parametrize("where", ["samples_s", "wall_s", "return_s", "isolated_s", "waited_s", "queued_s"])
def test_one_impossible_time_anywhere_spoils_it(where, value):
    damaged = {
        "samples_s": lambda: with_block(samples_s=(1.0, value)),
        "wall_s": lambda: with_block(wall_s=value),
        "return_s": lambda: with_variant(return_s=(1.0, value)),
        "isolated_s": lambda: with_variant(isolated_s=(value,)),
        "waited_s": lambda: with_variant(waited_s=(value,), queued_s=(1.0,)),
        "queued_s": lambda: with_variant(waited_s=(1.0,), queued_s=(1.0, value)),
    }

    assert not is_sound(damaged[where]())


@pytest.mark.parametrize("damaged", [with_variant(blocks=()), with_block(samples_s=())])
def test_without_samples_there_is_nothing_to_sum_up(damaged):
    assert not is_sound(damaged)


def test_variants_without_dispatch_or_time_alone_are_sound():
    assert is_sound(with_variant(return_s=(), isolated_s=()))


@pytest.mark.parametrize("started", ["", "yesterday", "2026-01-02T03:04:05"])
def test_a_beginning_that_is_no_moment_spoils_it(started):
    assert not is_sound(msgspec.structs.replace(SOUND, started=started))
