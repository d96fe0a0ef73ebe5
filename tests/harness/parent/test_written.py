import pytest

from jaxmeter.harness.parent.written import KNOWN_HARMLESS, MOST_KEPT, Warnings, find_last_words, find_warnings
from jaxmeter.harness.record import ProcessWarning

ABSL = 'W1126 21:51:38.260352   15447 debug_options_flags.cc:1357] "xla_cpu_use_thunk_runtime" is no longer supported.'
FATAL = "F1126 21:51:40.642342   15474 parse_flags_from_env.cc:234] Unknown flag in XLA_FLAGS: --xla_no_such=false"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (ABSL, 'debug_options_flags.cc:1357] "xla_cpu_use_thunk_runtime" is no longer supported.'),
        ("E1126 21:51:38.2 7 pjrt.cc:1] no memory", "pjrt.cc:1] no memory"),
        ("2026-11-26 21:51:38.26: W external/xla/x.cc:7] slow", "external/xla/x.cc:7] slow"),
        (
            "WARNING:2026-11-26 21:34:13,123:jax._src.xla_bridge:864: An NVIDIA GPU may be present",
            "jax._src.xla_bridge:864: An NVIDIA GPU may be present",
        ),
        ("/a/suite.py:12: UserWarning: odd", "/a/suite.py:12: UserWarning: odd"),
        ("  suite.py:12: FutureWarning: later", "suite.py:12: FutureWarning: later"),
        ("loss 0.12", None),
        ("I1126 21:51:38.260352   15447 service.cc:1] Platform Host", None),
        (FATAL, None),
        ("Traceback (most recent call last):", None),
        ("ValueError: 7", None),
        ("a warning: of a suite's own", None),
        *((f"/jax/_src/a.py:3: RuntimeWarning: {known}, and more", None) for known in KNOWN_HARMLESS),
    ],
)
def test_a_line_that_a_library_writes_as_a_warning_is_found_without_time_and_thread_unless_harmless(line, found):
    assert list(find_warnings(f"something\n{line}\n  warnings.warn(x)\n")) == ([] if found is None else [found])


def test_a_warning_counts_once_for_each_process_that_wrote_it():
    warnings, others = Warnings(), Warnings()
    warnings.add(f"{ABSL}\n{ABSL}\n")
    others.add(ABSL.replace("15447", "15448"))
    others.add("a.py:1: UserWarning: odd")
    warnings.join(others)

    assert [one.processes for one in warnings.list_all()] == [2, 1]
    assert warnings.list_all()[1] == ProcessWarning(text="a.py:1: UserWarning: odd", processes=1)


def test_of_very_many_warnings_some_are_kept():
    warnings = Warnings()
    warnings.add("\n".join(f"a.py:{line}: UserWarning: odd" for line in range(1000)))

    assert len(warnings.list_all()) == MOST_KEPT


def test_the_line_with_which_a_library_ended_its_process_is_found():
    assert find_last_words(f"{ABSL}\n{FATAL}") == FATAL.partition("15474 ")[2]
    assert find_last_words(ABSL) is None
