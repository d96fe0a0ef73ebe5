import msgspec
import pytest

from jaxmeter.harness.plan.work import (
    ACCELERATION,
    AGAIN_S,
    COMPILED,
    EAGER,
    EQUATION_S,
    KIND_S,
    NATIVE_RATES,
    PROGRAM_S,
    Work,
    call_s,
    compile_s,
)

NOTHING = Work(programs=0, equations=0, dispatched=0.0)


def doing(**work: float) -> Work:
    return msgspec.structs.replace(NOTHING, **work)


@pytest.mark.parametrize(
    ("mode", "rates"),
    [("jit", COMPILED), ("aot", COMPILED), ("eager", EAGER), ("mixed", EAGER), ("native", NATIVE_RATES)],
)
@pytest.mark.parametrize("what", ["dispatched", "derived", "equations", "flops", "elements", "bytes"])
def test_a_call_takes_the_time_of_each_thing_that_it_does(mode, rates, what):
    assert call_s(doing(**{what: 1000}), mode) == pytest.approx(1000 * getattr(rates, what))


def test_a_loop_that_is_not_compiled_is_compiled_in_every_call():
    loops = doing(again=2, equations_again=30)

    assert call_s(loops, "eager") == pytest.approx(2 * AGAIN_S + 30 * EQUATION_S)
    assert call_s(loops, "native") == 0.0, "a peer compiles nothing"


def test_an_accelerator_computes_faster_and_is_started_no_faster():
    work = doing(flops=1e12, dispatched=1.0)
    faster = msgspec.structs.replace(work, accelerator=True)

    starting_s = COMPILED.dispatched
    assert call_s(faster, "jit") - starting_s == pytest.approx((call_s(work, "jit") - starting_s) / ACCELERATION)


def test_a_program_whose_kernels_are_tried_out_takes_longer_to_compile_and_a_peer_compiles_nothing():
    plain = Work(programs=2, flops=1.0)
    tuned = msgspec.structs.replace(plain, tuning_s=0.8)

    assert compile_s(tuned, "jit") - compile_s(plain, "jit") == pytest.approx(0.8)
    assert compile_s(tuned, "native") == 0


def test_compiling_goes_by_programs_and_what_is_in_them():
    work = doing(programs=3, equations=100)

    assert compile_s(work, "jit") == pytest.approx(3 * PROGRAM_S + 100 * EQUATION_S)
    assert compile_s(work, "eager") == pytest.approx(3 * KIND_S + 100 * EQUATION_S)
    assert compile_s(work, "native") == 0.0
