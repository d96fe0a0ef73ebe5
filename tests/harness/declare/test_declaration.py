import inspect
from dataclasses import FrozenInstanceError, fields

import pytest

import jaxmeter
from jaxmeter import Caching, DeclarationError, Needs, Peer, State, Workload, workload
from jaxmeter.harness.declare.declaration import Declaration, Implementation, ImplementationOptions

STRUCTURES = (Declaration, ImplementationOptions, Peer, State, Caching, Needs)


def declare() -> Workload:
    return workload(inputs=len, reference=len)(lambda x: x)


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (lambda: State(cary={}), "State() has no option 'cary'; its options are carry, donate"),
        (
            lambda: Caching(shape={}),
            "Caching() has no option 'shape'; its options are new_shape, new_static, default_threshold",
        ),
        (lambda: Needs(device=2), "Needs() has no option 'device'; its options are devices, config, host"),
        (lambda: Peer(len, limits=len), "Peer() has no option 'limits'; its options are function, limit, convert"),
        (
            lambda: declare().implementation(mode=("jit",)),
            "implementation() has no option 'mode'; its options are name, modes, limit, ",
        ),
        (
            lambda: workload(input=len, reference=len),
            "workload() has no option 'input'; its options are inputs, reference, params, ",
        ),
        (
            lambda: workload(inputs=len, reference=len, tolerence=1e-5),
            "workload() has no option 'tolerence'; its options are inputs, reference, params, ",
        ),
    ],
)
def test_an_option_that_does_not_exist_is_an_error_that_lists_those_that_exist(use, said):
    with pytest.raises(DeclarationError) as caught:
        use()

    assert str(caught.value).startswith(said)


@pytest.mark.parametrize("declare", [lambda: workload(len), lambda: workload(reference=len)], ids=["bare", "one short"])
def test_an_option_that_is_missing_is_an_error_that_lists_those_that_exist(declare):
    with pytest.raises(
        DeclarationError, match=r"workload\(\) needs the option 'inputs'; its options are inputs, reference, params"
    ):
        declare()


def test_a_peer_is_not_one_without_its_function():
    with pytest.raises(
        DeclarationError, match=r"Peer\(\) needs the option 'function'; its options are function, limit"
    ):
        Peer(convert=len)


@pytest.mark.parametrize("structure", STRUCTURES, ids=lambda structure: structure.__name__)
def test_every_option_is_described_once(structure):
    described = inspect.getdoc(structure)

    for name in (option.name for option in fields(structure)):
        assert described.count(f"\n  {name}: ") == 1, name


def test_the_decorators_show_the_options_and_their_descriptions():
    assert list(inspect.signature(jaxmeter.workload).parameters) == [option.name for option in fields(Declaration)]
    assert jaxmeter.workload.__doc__ == Declaration.__doc__
    assert declare().implementation.__doc__ == ImplementationOptions.__doc__


def test_what_is_declared_never_changes():
    with pytest.raises(FrozenInstanceError):
        declare().declaration.tolerance = 1.0


def test_a_workload_of_any_function_needs_no_suite():
    declared = workload(abs, inputs=lambda key: 1, reference=abs, modes=("jit",))

    assert isinstance(declared, Workload)
    assert declared.variants == ("abs:jit",)


def test_an_implementation_has_all_options_of_its_decorator_and_of_a_peer():
    def convert(x):
        return (x,)

    def limit():
        return None

    declared = workload(inputs=len, reference=len, peers={"peer": Peer(len, limit=limit, convert=convert)})(abs)
    declared.implementation(name="own", modes=("jit",), limit=limit, compiles=2, raises=TypeError)(sum)

    assert declared.implementations[1:] == [
        Implementation(len, name="peer", modes=("native",), limit=limit, convert=convert),
        Implementation(sum, name="own", modes=("jit",), limit=limit, compiles=2, raises=TypeError),
    ]
