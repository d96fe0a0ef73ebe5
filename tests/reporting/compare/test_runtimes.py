"""Two runs of two runtimes: one sentence, in place of one for each time."""

import msgspec
import pytest
from typer.testing import CliRunner

from jaxmeter.cli.app import app
from jaxmeter.document import markdown
from jaxmeter.reporting.compare.budgets import Budgets, make_defaults
from jaxmeter.reporting.compare.conditions import Runtime, describe_other_runtime, name_confirming_command
from jaxmeter.reporting.compare.gate import judge
from jaxmeter.reporting.compare.verdicts import Verdict
from jaxmeter.reporting.view.changes import describe_comparison, list_changed, make_verdict
from tests import samples
from tests.reporting.compare.changed import AFTER, BEFORE, checked, compare, plain, time_of, timed

LOCAL = Runtime("3.11.7")
OWN = Runtime("3.13.5", "jaxmeter:cpu-1f0c9a7b3d52")
SENTENCE = describe_other_runtime(OWN, LOCAL, "cpu")


@pytest.mark.parametrize(
    ("after", "option"),
    [
        (Runtime("3.13.5", "jaxmeter:gpu-ab"), "--runtime container"),
        (Runtime("3.13.5", "registry:5000/team/jax:1"), "--runtime container --image registry:5000/team/jax:1"),
        (Runtime("3.12.1"), "--runtime local and Python 3.12.1"),
    ],
)
def test_the_command_is_that_of_the_later_runtime(after, option):
    assert f"jaxmeter run --backend gpu {option} makes" in describe_other_runtime(LOCAL, after, "gpu")


@pytest.mark.parametrize(
    ("before", "after", "is_same"),
    [
        (OWN, Runtime("3.13.5", "jaxmeter:cpu-another"), True),
        (OWN, Runtime("3.13.6", "jaxmeter:cpu-another"), False),
        (Runtime("3.13.5", "host:5000/jax:1"), Runtime("3.13.5", "host:5000/jax@sha256:12"), True),
        (Runtime("3.13.5", "host:5000/jax:1"), Runtime("3.13.5", "host:5000/flax:1"), False),
        (OWN, Runtime("3.13.5"), False),
        (LOCAL, LOCAL, True),
        (Runtime("3.13.5", "team/jax:1", "sha256:1f"), Runtime("3.13.5", "sha256:1f", "sha256:1f"), True),
        (Runtime("3.13.5", "team/jax:1", "sha256:1f"), Runtime("3.13.5", "sha256:2a", "sha256:2a"), False),
    ],
)
def test_a_runtime_is_a_repository_of_images_or_none_and_a_python(before, after, is_same):
    assert (describe_other_runtime(before, after, "cpu") == "") == is_same


def of_two_runtimes():
    """Two runs of two Pythons, and so with two calibration loops."""
    image = samples.environment(python="3.13.5", image=f"{OWN.image} sha256:1f0c9a7")
    local = samples.environment(python="3.11.7")
    after = {"numerics": checked("bb"), "timing": timed(1e-4, calibration="alu 2: CPython 3.11.7")}
    before = {"numerics": checked("aa"), "timing": timed(1e-4, calibration="alu 2: CPython 3.13.5")}
    return compare(
        plain(BEFORE, probes=before, environment=image), plain(AFTER, source="1", probes=after, environment=local)
    )


def test_every_output_says_it_once_and_nothing_of_the_calibration_loop():
    changes = of_two_runtimes()
    judgement = judge(changes, Budgets(defaults=make_defaults(0.03)))

    assert changes.conditions.other_runtime == SENTENCE
    assert (time_of(changes).verdict, time_of(changes).reason) == (Verdict.NOT_COMPARABLE, SENTENCE)
    assert judgement.obstacles == (SENTENCE,)
    text = markdown.write(describe_comparison(changes, judgement, in_full=True))
    assert text.count("the baseline was measured in") == 1
    assert next(item.text.lower() for item in list_changed(changes)) == SENTENCE.lower()
    assert not any("calibration" in item.text for item in list_changed(changes))
    assert make_verdict(changes, judgement)["other_runtime"] == SENTENCE
    assert compare(plain(BEFORE), plain(AFTER)).conditions.other_runtime == ""


@pytest.mark.parametrize(
    ("python", "image", "code"), [("3.11.0", "", 0), ("3.11.0", "jaxmeter:cpu-1", 3), ("3.13.5", "", 3)]
)
def test_a_run_that_is_to_come_is_judged_by_its_runtime(tmp_path, python, image, code):
    folder = samples.write_run(tmp_path / "run", samples.run())

    ended = CliRunner().invoke(app, ["runtime", str(folder), "--python", python, "--image", image])

    assert ended.exit_code == code
    assert ended.output.count("\n") == (1 if code else 0)


@pytest.mark.parametrize(
    ("revision", "commit"),
    [("a1b2c3d" * 6, "a1b2c3da1b2c"), (None, "COMMIT"), ("--upload-pack=evil", "COMMIT"), ("a; rm -r ~", "COMMIT")],
)
def test_the_command_that_confirms_a_slower_call_names_the_commit_the_run_and_the_suites(revision, commit):
    before, after = (run.manifest for run in (plain(BEFORE), plain(AFTER)))
    environment = msgspec.structs.replace(before.environment, git_revision=revision)
    before = msgspec.structs.replace(before, environments={before.backend: environment})
    settings = msgspec.structs.replace(after.settings, suites=("jaxmeter.suites.selu", "bench/my step.py"))
    after = msgspec.structs.replace(after, settings=settings)

    assert name_confirming_command(before, after, "results/base") == (
        f"git worktree add ../base {commit} && "
        "jaxmeter gate results/base --suites 'bench/my step.py' --baseline-checkout ../base"
    )
