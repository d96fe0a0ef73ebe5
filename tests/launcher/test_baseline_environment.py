import json
import platform
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmeter.harness.machine.platforms import _NOT_USED
from jaxmeter.harness.record.differences import STEERING as HARNESS_STEERING
from launcher import baseline_environment
from launcher.baseline_environment import Baseline, find_changes, find_obstacle, read_baseline, read_installed
from launcher.options import UsageError
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


def test_the_image_of_a_run_is_read(tmp_path):
    folder = samples.write_run(tmp_path / "run", samples.run(environment=samples.environment(image=IMAGE)))

    assert read_baseline(folder).image == IMAGE


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", json.dumps({"backend": "cpu", "environments": {"cpu": {"python": "3"}}})]
)
def test_a_manifest_that_cannot_be_read_is_said(tmp_path, text):
    (tmp_path / "manifest.json").write_text(text)

    with pytest.raises(UsageError, match=r"manifest.json: cannot be read \(\w+\); measure a new baseline"):
        read_baseline(tmp_path)


NO_VERSIONS = ("0/../results/evil/pkg", "1 @ file:///tmp", "--editable=/tmp/x", "1 --index-url=http://x", "", "1\n2")
VERSIONS = st.one_of(
    st.sampled_from([*NO_VERSIONS, "0.10.1", "1!2.0RC1+x"]),
    st.text(),
    st.integers(),
    st.none(),
    st.lists(st.text(), max_size=2),
)


@given(name=st.sampled_from(baseline_environment.PINNED), version=VERSIONS, other=st.text(max_size=8))
def test_what_pip_is_given_is_a_known_name_with_a_version_or_nothing(tmp_path_factory, name, version, other):
    folder = tmp_path_factory.mktemp("run")
    here = {"python": "3.11", "packages": {name: version, other: "/tmp/x"}, "variables": {}}
    (folder / "manifest.json").write_text(json.dumps({"backend": "cpu", "environments": {"cpu": here}}))

    try:
        arguments = read_baseline(folder).wanted.arguments
    except UsageError:
        arguments = ()

    assert all(re.fullmatch(r"[a-z-]+==[0-9a-z.!+]+", one) for one in arguments)
    assert {one.partition("==")[0] for one in arguments} <= set(baseline_environment.PINNED)


@pytest.mark.parametrize(
    "image", ["--privileged", "jaxmeter --privileged", "x sha256:12", "x ../../etc", f"x {IMAGE_ID}/y"], ids=str
)
def test_an_image_without_a_whole_id_is_never_asked_for(image):
    assert baseline(image=image).image_id == ""


@pytest.mark.parametrize(
    "here",
    [
        {"python": "3.11\x1b[2J"},
        {"image": "\x1b]0;title\x07"},
        {"variables": {"XLA_FLAGS": 1}},
    ],
    ids=str,
)
def test_what_no_measurement_has_written_is_refused(tmp_path, here):
    environment = {"python": "3.11", "packages": {}, "variables": {}, **here}
    (tmp_path / "manifest.json").write_text(json.dumps({"backend": "cpu", "environments": {"cpu": environment}}))

    with pytest.raises(UsageError, match="measure a new baseline"):
        read_baseline(tmp_path)


def test_what_is_installed_again_is_what_measuring_uses_in_the_recorded_versions():
    wanted = baseline().wanted

    assert wanted.arguments == ("jax==0.10.1", "jaxlib==0.10.1", "numpy==2.0.0")
    assert wanted.words == "jax==0.10.1 jaxlib==0.10.1 numpy==2.0.0"


@pytest.mark.parametrize(
    ("installed", "changes"),
    [
        ({"jax": "0.10.1", "jaxlib": "0.10.1", "numpy": "2.1"}, []),
        ({"jax": "0.10.2", "jaxlib": "0.10.2"}, ["jax 0.10.1 → 0.10.2", "jaxlib 0.10.1 → 0.10.2"]),
        ({"jax": "0.10.1", "jaxlib": "0.10.2"}, ["jaxlib 0.10.1 → 0.10.2"]),
        ({}, []),
    ],
)
def test_versions_of_jax_and_jaxlib_steer_programs_and_others_do_not(installed, changes):
    assert find_changes(baseline(), installed, {}) == changes


@pytest.mark.parametrize(
    ("before", "now", "changes"),
    [
        ({"XLA_FLAGS": "--a"}, {"XLA_FLAGS": "--a"}, []),
        ({"XLA_FLAGS": "--a"}, {"XLA_FLAGS": "--b"}, ["XLA_FLAGS"]),
        ({"XLA_FLAGS": "--a"}, {}, ["XLA_FLAGS"]),
        ({}, {"JAX_ENABLE_X64": "1"}, ["JAX_ENABLE_X64"]),
        ({"JAX_PLATFORMS": "cpu"}, {}, []),
        ({}, {"JAX_COMPILATION_CACHE_DIR": "/a", "JAX_DISABLE_JIT": "1"}, []),
        ({"OMP_NUM_THREADS": "2"}, {"HOME": "/root"}, []),
        ({"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}, {}, []),
        ({"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.5"}, {}, ["XLA_PYTHON_CLIENT_MEM_FRACTION"]),
    ],
)
def test_flags_steer_programs_and_other_variables_do_not(before, now, changes):
    assert find_changes(baseline(variables=before), PACKAGES, now) == changes


def test_a_flag_with_a_path_at_home_is_the_one_that_was_recorded(monkeypatch):
    monkeypatch.setenv("HOME", "/home/anna")
    before = baseline(variables={"XLA_FLAGS": "--xla_gpu_cuda_data_dir=~/cuda"})

    assert find_changes(before, PACKAGES, {"XLA_FLAGS": "--xla_gpu_cuda_data_dir=/home/anna/cuda"}) == []


@pytest.mark.parametrize(
    "now", [{}, {"XLA_FLAGS": "--xla_dump_to=/a --xla_dump_hlo_as_text"}, {"JAX_DUMP_IR_TO": "/a"}], ids=str
)
def test_what_is_written_down_while_compiling_steers_no_program(now):
    before = baseline(variables={"XLA_FLAGS": "--xla_gpu_dump_llvmir --xla_dump_to=***", "JAX_DUMP_IR_TO": "***"})

    assert find_changes(before, PACKAGES, now) == []


def test_what_the_harness_leaves_out_is_no_flag():
    left_out = [f"{name}X" if name.endswith("_") else name for name in _NOT_USED]

    assert find_changes(baseline(), PACKAGES, dict.fromkeys(left_out, "1")) == []


@pytest.mark.parametrize(
    ("changes", "in_container"),
    [({}, False), ({"image": IMAGE}, False), ({"image": IMAGE, "python": "3.1.2"}, True)],
)
def test_the_same_python_or_an_image_can_take_turns_on_a_cpu(changes, in_container):
    assert find_obstacle(baseline(**changes), in_container=in_container) == ""


def test_an_image_is_known_by_its_id_whatever_is_called_so_today():
    assert baseline(image=IMAGE).image_id == IMAGE_ID
    assert baseline().image_id == ""


@pytest.mark.parametrize(
    ("changes", "in_container", "said"),
    [
        ({}, True, "it was measured outside of containers; --runtime local can make its environment anew"),
        ({"image": IMAGE, "backend": "tpu"}, True, "two processes that take turns on one tpu have never been tried"),
        ({"backend": "gpu"}, False, "two processes that take turns on one gpu have never been tried"),
        ({"python": "3.1.2"}, False, f"it was made with Python 3.1.2, here is {HERE}"),
    ],
)
def test_what_is_in_the_way_is_said(changes, in_container, said):
    assert find_obstacle(baseline(**changes), in_container=in_container) == said


def test_what_pip_lists_is_read():
    assert read_installed("jax==0.10.2\nml_dtypes==0.6.0\n-e /here\nPyYAML==6.0\n") == {
        "jax": "0.10.2",
        "ml-dtypes": "0.6.0",
        "pyyaml": "6.0",
    }


def test_the_harness_names_the_same_packages():
    assert set(baseline_environment.STEERING) <= set(HARNESS_STEERING)
