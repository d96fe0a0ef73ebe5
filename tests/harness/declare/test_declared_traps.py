import pytest

from jaxmeter import no_reference, workload
from jaxmeter.harness.declare.declaration import DeclarationError


def declare(**options):
    def double(x):
        return x * 2

    return workload(inputs=lambda key: 1.0, reference=no_reference("none"), modes=("jit",), **options)(double)


def test_a_variant_declares_what_its_workload_and_its_implementation_do():
    made = declare(traps=("callbacks",))
    made.implementation(lambda x: x + x, name="sum", traps=("dead_work",))

    assert made.find_declared_traps("double:jit") == {"callbacks"}
    assert made.find_declared_traps("sum:jit") == {"callbacks", "dead_work"}


@pytest.mark.parametrize("traps", [("callback",), "callbacks"])
def test_a_kind_that_does_not_exist_is_refused_with_those_that_do(traps):
    made = declare(traps=traps)

    with pytest.raises(DeclarationError, match="callbacks"):
        made.check()
    with pytest.raises(DeclarationError, match="callbacks"):
        made.implementation(lambda x: x, name="same", traps=traps)
