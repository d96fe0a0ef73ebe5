from pathlib import Path

import pytest

from launcher.backends import BACKENDS
from launcher.nights import FORBIDDEN
from launcher.options import UsageError
from launcher.schedulers import FORBIDDEN_IN_IMAGES, FORBIDDEN_IN_WORKFLOWS, SCHEDULERS
from launcher.schedules import find_warnings, read_schedule_request

WHERE = ("--store", "s3://team-bucket/nightly", "--machine", "lab 3")
IMAGES = ("--image", "registry/jaxmeter@sha256:1", "--store-image", "registry/stores@sha256:2")
NODE = ("--node", "accelerator=h100")
LEAST = {
    "kubernetes": (*WHERE, *IMAGES, *NODE),
    "jobset": (*WHERE, *IMAGES, *NODE),
    "slurm": WHERE,
    "pyxis": (*WHERE, *IMAGES),
    "github": WHERE,
    "systemd": WHERE,
}
"""What each engine has to be given."""


@pytest.mark.parametrize("engine", SCHEDULERS)
def test_the_least_that_an_engine_needs_is_enough(engine):
    asked = read_schedule_request([engine, *LEAST[engine]])

    assert (asked.store, asked.machine) == ("s3://team-bucket/nightly", "lab 3")
    assert asked.at.text == "0 3 * * *"
    assert asked.backend.name == SCHEDULERS[engine].backends[0]
    assert asked.night == ()


def test_what_is_asked_of_a_cluster_is_told_from_what_is_asked_of_the_night():
    asked = read_schedule_request(
        [
            *("kubernetes", *LEAST["kubernetes"], "--node=zone=a", "--devices", "4", "--service-account", "bench"),
            *("--backend", "tpu", "--privileged", "--at", "0 1 * * 1", "--to", "a.yaml"),
            *("--suites", "mine", "--full", "--budgets=/work/budgets/b.toml"),
        ]
    )

    assert asked.night == ("--suites", "mine", "--full", "--budgets=/work/budgets/b.toml")
    assert asked.nodes == {"accelerator": "h100", "zone": "a"}
    assert (asked.devices, asked.service_account, asked.is_privileged) == (4, "bench", True)
    assert (asked.backend, asked.at.text, asked.to) == (BACKENDS["tpu"], "0 1 * * 1", Path("a.yaml"))


@pytest.mark.parametrize("engine", ["slurm", "github", "systemd"])
def test_a_night_in_a_checkout_takes_the_options_of_a_measurement_and_its_container(engine):
    words = ("--runtime", "container", "--image", "mine", "--suites=mine.py", "--quick")

    assert read_schedule_request([engine, *WHERE, *words]).night == words


@pytest.mark.parametrize("engine", ["slurm", "systemd"])
def test_a_night_in_a_checkout_of_its_own_takes_the_places_of_what_it_writes(engine):
    words = ("--out", "results", "--page=page.html", "--verdict", "verdict.json")

    assert read_schedule_request([engine, *WHERE, *words]).night == words


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "name an engine first, one of kubernetes, jobset, slurm, pyxis, github, systemd"),
        (["--store", "s3://b"], "name an engine first"),
        (["kubernets", *WHERE], "there is no engine 'kubernets'; nearest: 'kubernetes'; engines: kubernetes, "),
        (["", *WHERE], "there is no engine ''"),
        (["slurm", "--machine", "lab"], "name store and machine: nox -s schedule -- slurm --store s3://team-bucket/"),
        (["slurm", "--store", "s3://b/n"], "name store and machine"),
        (["slurm", "--store"], "--store needs a value"),
        (["slurm", "--store", "bucket", "--machine", "a"], "--store 'bucket': give s3://…, gs://…, file:///…"),
        (["pyxis", "--store", "file:///a", "--machine", "a", *IMAGES], "give s3://…, gs://…; a folder in a container"),
        (["slurm", *WHERE, "--machine="], "--machine is empty"),
        (["slurm", *WHERE, "--machine=--full"], "--machine '--full' would be taken for an option"),
        (["slurm", *WHERE, "--machine=a\nb"], "characters that cannot be printed"),
        (["slurm", *WHERE, "--suites", "a\u2028b"], "characters that cannot be printed"),
        (["slurm", *WHERE, "--at", "daily"], "give five fields"),
        (["slurm", *WHERE, "--bugdet", "5m"], "--bugdet: a night has no such option; nearest: --budget"),
        (["kubernetes", *LEAST["kubernetes"], "--qiuck"], "--qiuck: a night has no such option; nearest: --quick"),
        (["slurm", *WHERE, "--backend", "cpu", "--cuda", "12"], "--cuda belongs to the gpu backend"),
        (["slurm", *WHERE, "--backend", "tpu"], "--backend 'tpu': slurm measures on cpu or gpu"),
        (["kubernetes", *LEAST["kubernetes"], "--backend", "cpu"], "kubernetes measures on gpu or tpu"),
        (["kubernetes", *WHERE], "kubernetes needs --image: the image that measures"),
        (["kubernetes", *WHERE, *IMAGES], "kubernetes needs --node: a label of the nodes"),
        (["pyxis", *WHERE, *IMAGES[:2]], "pyxis needs --store-image: the image of the lock 'stores'"),
        (["slurm", *WHERE, "--node", "a=b"], "--node: not for slurm, only for kubernetes, jobset"),
        (["systemd", *WHERE, "--devices=2"], "--devices: not for systemd, only for kubernetes, jobset, slurm, pyxis"),
        (["pyxis", *WHERE, *IMAGES, "--privileged"], "--privileged: not for pyxis"),
        (["kubernetes", *LEAST["kubernetes"], "--privileged"], "--privileged: NVIDIA GPUs need none"),
        (["slurm", *WHERE, "--devices", "2"], "--devices '2': the CPU has none to count"),
        (["slurm", *WHERE, "--backend=gpu", "--devices=0"], "--devices '0' is no count"),
        (["jobset", *LEAST["jobset"], "--node", "zone"], "--node 'zone' is no LABEL=VALUE"),
        (["pyxis", *WHERE, *IMAGES, "--image=a b"], "--image 'a b' cannot be one"),
        (["jobset", *LEAST["jobset"], "--service-account=A"], "--service-account 'A' cannot be one"),
        (["jobset", *LEAST["jobset"], "--budgets", "b.toml"], "a container does not see this machine's files"),
        (["github", *WHERE, "--suites", "a${{ secrets.B }}"], "github would evaluate '${{' wherever it stands"),
        (["systemd", *WHERE, "--to", "a.timer"], "--to 'a.timer': give a name that ends in .service"),
    ],
)
def test_what_cannot_be_scheduled_is_said(arguments, words):
    with pytest.raises(UsageError) as raised:
        read_schedule_request(arguments)

    assert words in str(raised.value)


FORBIDDEN_ANYWHERE = [
    *((engine, name) for engine in SCHEDULERS for name in FORBIDDEN),
    *((engine, name) for engine in ("kubernetes", "jobset", "pyxis") for name in FORBIDDEN_IN_IMAGES),
    *(("github", name) for name in FORBIDDEN_IN_WORKFLOWS),
]


@pytest.mark.parametrize(("engine", "name"), FORBIDDEN_ANYWHERE)
def test_an_option_that_would_break_the_night_is_refused_before_it(engine, name):
    with pytest.raises(UsageError, match=f"^{name}: "):
        read_schedule_request([engine, *LEAST[engine], f"{name}=a"])


def test_an_image_by_a_tag_is_warned_of_since_a_tag_may_name_another_image_tomorrow():
    digest = read_schedule_request(["pyxis", *LEAST["pyxis"]])
    tag = read_schedule_request(["pyxis", *LEAST["pyxis"], "--image", "registry/jaxmeter:gpu"])
    file = read_schedule_request(["pyxis", *LEAST["pyxis"], "--image", "/images/jaxmeter.sqsh"])

    assert find_warnings(digest) == find_warnings(file) == []
    (warning,) = find_warnings(tag)
    assert warning.startswith("--image registry/jaxmeter:gpu is no digest")


@pytest.mark.parametrize(("engine", "warns"), [("slurm", True), ("pyxis", False)])
def test_budgets_of_a_checkout_that_are_not_there_yet_are_told(engine, warns, tmp_path):
    path = tmp_path / "budgets.toml" if engine == "slurm" else "/work/budgets/b.toml"
    asked = read_schedule_request([engine, *LEAST[engine], "--budgets", str(path)])

    assert any(f"--budgets {path}: no such file yet" in one for one in find_warnings(asked)) is warns


def test_budgets_that_are_there_are_not_told(tmp_path):
    path = tmp_path / "budgets.toml"
    path.write_text("")

    assert find_warnings(read_schedule_request(["slurm", *WHERE, "--budgets", str(path)])) == []
