import json
import platform
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmeter.harness.machine.platforms import _NOT_USED
from jaxmeter.harness.record.differences import STEERING as HARNESS_STEERING
from jaxmeter.launch.gate import PINNED, STEERING, Baseline, find_changes, find_obstacle, read_baseline, read_installed
from jaxmeter.launch.options import UsageError
from tests import samples

PACKAGES = {"jax": "0.10.1", "jaxlib": "0.10.1", "numpy": "2.0.0", "torch": "2.15.0"}
IMAGE_ID = f"sha256:{'1f0c9a77' * 8}"
IMAGE = f"jaxmeter:cpu-12 {IMAGE_ID}"
HERE = ".".join(platform.python_version_tuple())


def baseline(**changes):
    return Baseline(**{"backend": "cpu", "python": HERE, "packages": PACKAGES, "variables": {}, **changes})


def test_packages_and_flags_are_those_that_the_run_recorded(tmp_path):
    run = samples.run(environment=samples.environment(variables={"XLA_FLAGS": "--a"}))
    folder = samples.write_run(tmp_path / "run", run)

    found = read_baseline(folder)

    assert (found.backend, found.python) == ("cpu", "3.11.0")
    assert found.packages == run.manifest.environment.packages
    assert (found.variables, found.image) == ({"XLA_FLAGS": "--a"}, "")
    of_image = samples.write_run(tmp_path / "image", samples.run(environment=samples.environment(image=IMAGE)))
    assert (read_baseline(of_image).image, read_baseline(of_image).image_id) == (IMAGE, IMAGE_ID)
    assert found.image_id == ""


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"backend": "cpu", "environments": {"cpu": {"python": "3"}}}'])
def test_a_manifest_that_cannot_be_read_is_said(tmp_path, text):
    (tmp_path / "manifest.json").write_text(text)

    with pytest.raises(UsageError, match=r"manifest.json: cannot be read \(\w+\); measure a new baseline"):
        read_baseline(tmp_path)


NO_VERSIONS = ("0/../results/evil/pkg", "1 @ file:///tmp", "--editable=/tmp/x", "1 --index-url=http://x", "", "1\n2")
SAMPLED = st.sampled_from([*NO_VERSIONS, "0.10.1", "1!2.0RC1+x"])
VERSIONS = st.one_of(SAMPLED, st.text(), st.integers(), st.none(), st.lists(st.text(), max_size=2))


@given(name=st.sampled_from(PINNED), version=VERSIONS, other=st.text(max_size=8))
def test_what_pip_is_given_is_a_known_name_with_a_version_or_nothing(tmp_path_factory, name, version, other):
    folder = tmp_path_factory.getbasetemp()
    here = {"python": "3.11", "packages": {name: version, other: "/tmp/x"}, "variables": {}}
    (folder / "manifest.json").write_text(json.dumps({"backend": "cpu", "environments": {"cpu": here}}))

    try:
        arguments = read_baseline(folder).wanted.arguments
    except UsageError:
        arguments = ()

    assert all(re.fullmatch(r"[a-z-]+==[0-9a-z.!+]+", one) for one in arguments)
    assert {one.partition("==")[0] for one in arguments} <= set(PINNED)


@pytest.mark.parametrize("image", ["jaxmeter --privileged", "x sha256:12", "x ../../etc", f"x {IMAGE_ID}/y"])
def test_an_image_without_a_whole_id_is_never_asked_for(image):
    assert baseline(image=image).image_id == ""


@pytest.mark.parametrize("here", [{"python": "3.11\x1b[2J"}, {"image": "\x1b]0;\x07"}, {"variables": {"XLA_FLAGS": 1}}])
def test_what_no_measurement_has_written_is_refused(tmp_path, here):
    environment = {"python": "3.11", "packages": {}, "variables": {}, **here}
    (tmp_path / "manifest.json").write_text(json.dumps({"backend": "cpu", "environments": {"cpu": environment}}))

    with pytest.raises(UsageError, match="measure a new baseline"):
        read_baseline(tmp_path)


def test_what_is_installed_again_is_what_measuring_uses_in_the_recorded_versions():
    assert baseline().wanted.arguments == ("jax==0.10.1", "jaxlib==0.10.1", "numpy==2.0.0")


LEFT_OUT = [f"{name}X" if name.endswith("_") else name for name in _NOT_USED]
DUMPS = {"XLA_FLAGS": "--xla_gpu_dump_llvmir --xla_dump_to=***", "JAX_DUMP_IR_TO": "***"}


@pytest.mark.parametrize(
    ("installed", "before", "now", "changes"),
    [
        ({"jax": "0.10.2", "jaxlib": "0.10.1", "numpy": "2.1"}, {}, {}, ["jax 0.10.1 → 0.10.2"]),
        ({"jax": "0.10.1", "jaxlib": "0.10.2"}, {}, {}, ["jaxlib 0.10.1 → 0.10.2"]),
        ({}, {}, {}, []),
        (PACKAGES, {"XLA_FLAGS": "--a"}, {"XLA_FLAGS": "--a"}, []),
        (PACKAGES, {"XLA_FLAGS": "--a"}, {"XLA_FLAGS": "--b"}, ["XLA_FLAGS"]),
        (PACKAGES, {"XLA_FLAGS": "--a"}, {}, ["XLA_FLAGS"]),
        (PACKAGES, {}, {"JAX_ENABLE_X64": "1"}, ["JAX_ENABLE_X64"]),
        (PACKAGES, {"OMP_NUM_THREADS": "2", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}, {"HOME": "/root"}, []),
        (PACKAGES, {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.5"}, {}, ["XLA_PYTHON_CLIENT_MEM_FRACTION"]),
        # A path at home was recorded with a tilde.
        (PACKAGES, {"XLA_FLAGS": "--xla_dir=~/cuda"}, {"XLA_FLAGS": "--xla_dir=/home/anna/cuda"}, []),
        # What is written down while compiling steers no program.
        *(
            (PACKAGES, DUMPS, now, [])
            for now in ({}, {"XLA_FLAGS": "--xla_dump_to=/a --xla_dump_hlo_as_text"}, {"JAX_DUMP_IR_TO": "/a"})
        ),
        (PACKAGES, {}, dict.fromkeys(LEFT_OUT, "1"), []),
    ],
)
def test_versions_of_jax_and_flags_steer_programs_and_others_do_not(monkeypatch, installed, before, now, changes):
    monkeypatch.setenv("HOME", "/home/anna")

    assert find_changes(baseline(variables=before), installed, now) == changes


@pytest.mark.parametrize(
    ("changes", "in_container", "said"),
    [
        ({"image": IMAGE}, False, ""),
        ({"image": IMAGE, "python": "3.1.2"}, True, ""),
        ({}, True, "it was measured outside of containers; --runtime local can make its environment again"),
        ({"image": IMAGE, "backend": "tpu"}, True, "two processes that take turns on one tpu have never been tried"),
        ({"backend": "gpu"}, False, "two processes that take turns on one gpu have never been tried"),
        ({"python": "3.1.2"}, False, f"it was made with Python 3.1.2, here is {HERE}"),
    ],
)
def test_what_is_in_the_way_is_said_and_the_same_python_or_an_image_is_not(changes, in_container, said):
    assert find_obstacle(baseline(**changes), in_container=in_container) == said


def test_what_pip_lists_is_read_and_the_harness_names_the_same_packages():
    listed = "jax==0.10.2\nml_dtypes==0.6.0\n-e /here\nPyYAML==6.0\n"

    assert read_installed(listed) == {"jax": "0.10.2", "ml-dtypes": "0.6.0", "pyyaml": "6.0"}
    assert set(STEERING) <= set(HARNESS_STEERING)
