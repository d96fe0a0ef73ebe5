from tests.test_architecture import CHECKOUT, imports

LAYERS = (
    *("levels", "origin", "unread", "fingerprint", "declaration", "implementation"),
    *("check", "registry", "workload", "configuration", "catalogue", "own_packages"),
)


def test_what_is_declared_is_written_in_layers_that_import_only_those_before():
    inside = "jaxmeter.harness.declare."
    arrows = [
        (importing.removeprefix(inside), imported.removeprefix(inside))
        for importing, imported in imports(CHECKOUT, "jaxmeter/harness/declare")
        if imported.startswith(inside)
    ]

    assert arrows
    assert [arrow for arrow in arrows if LAYERS.index(arrow[1]) >= LAYERS.index(arrow[0])] == []
