"""What engines and pip print; excerpts, with the names and addresses of other machines."""

from pathlib import Path

import pytest

from jaxmeter.launch.engines import ENGINE_FAILED, explain_build, explain_start

# docker 20.10 with BuildKit; newer ones end with "ERROR: failed to solve: process ... did not complete successfully".
STEP_FAILED = """\
#5 ERROR: executor failed running [/bin/sh -c /opt/venv/bin/pip install --quiet -r /tmp/lock.txt]: exit code: 1
"""
# pip ends with these two lines whatever kept it from the index.
NOT_FOUND = """\
#5 0.401 ERROR: Could not find a version that satisfies the requirement jax==0.10.2 (from versions: none)
#5 0.401 ERROR: No matching distribution found for jax==0.10.2
"""
RETRYING = "#5 2.589 WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by '{}': /simple/jax/\n"
REGISTRY = "docker.io/library/python:3.13-slim-nonexistent"

NO_REQUEST = (
    "failed to solve with frontend dockerfile.v0: failed to create LLB definition: failed to do request: Head "
    '"https://registry-1.docker.io/v2/library/python/manifests/3.13-slim-nonexistent"'
)

OUTPUTS = {
    "the disk is full": [
        "#5 2.9 pip._vendor.urllib3.exceptions.ProtocolError: (\"Connection broken: OSError(28, 'No space left on "
        "device')\", OSError(28, 'No space left on device'))\n" + STEP_FAILED,
        "Error: committing container: writing blob: write /var/tmp/storage/1: no space left on device\n",
        "failed to solve: ResourceExhausted: mkdir /var/lib/docker/overlay2/x: disk quota exceeded\n",
    ],
    "a certificate is not trusted": [
        f"{NO_REQUEST}: x509: certificate signed by unknown authority\n",
        RETRYING.format("SSLError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed"),
    ],
    "the base image is not here": [
        f"{NO_REQUEST}: dial tcp: lookup registry-1.docker.io: no such host\n",
        f"ERROR: failed to solve: python:3: failed to resolve source metadata for {REGISTRY}: not found\n",
        'Error: initializing source docker://python: Get "https://registry-1.docker.io/v2/": dial tcp: no such host\n',
        'Error: short-name "team/python:3.13" did not resolve to an alias and no registries are defined\n',
        "Error response from daemon: manifest for python:3 not found: manifest unknown: manifest unknown\n",
        "Error response from daemon: pull access denied for team/python, repository does not exist\n",
        "failed to solve: python:3: failed to authorize: failed to fetch anonymous token: dial tcp: i/o timeout\n",
    ],
    "the package index (or registry) needs valid credentials": [
        f"#5 2.5 WARNING: 401 Error, Credentials not correct for https://pypi.example.com/simple/jax/\n{NOT_FOUND}",
        "#5 2.5 User for pypi.example.com: ERROR: Exception:\n#5 2.5 EOFError: EOF when reading a line\n" + STEP_FAILED,
        "#5 3.1 ERROR: Could not install requirement jax==0.10.2 because of HTTP error 403 Client Error: Forbidden\n",
    ],
    "the package index does not answer, or lacks a locked package": [
        RETRYING.format("NewConnectionError('[Errno 111] Connection refused')") + NOT_FOUND + STEP_FAILED,
        "#5 9.1 pip._vendor.urllib3.exceptions.ProtocolError: ('Connection broken: IncompleteRead(1 bytes read, 2 more "
        "expected)', IncompleteRead(1 bytes read, 2 more expected))\n" + STEP_FAILED,
        NOT_FOUND + STEP_FAILED,
        "#5 0.3 ERROR: Failed to resolve 'pypi.org' (Name or service not known)\n" + STEP_FAILED,
        "#5 0.3 urllib3.exceptions.MaxRetryError: Max retries exceeded (Caused by ProxyError('Cannot connect'))\n",
    ],
    "the engine does not answer any more": [
        "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?\n",
    ],
    "the package index serves other files than those that were locked": [
        "#5 THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\n" + STEP_FAILED,
    ],
    "the engine cannot hand GPUs": [
        'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].\n',
        "docker: nvidia.com/gpu=all is not an absolute path.\nSee 'docker run --help'.\n",
        "Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all\n",
        "nvidia-container-cli: initialization error: nvml error: driver not loaded\n",
        "docker: Error response from daemon: failed to discover GPU vendor from CDI: no known GPU vendor found\n",
    ],
    "no permission to use the engine": [
        "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock\n",
    ],
    "this machine does not let the engine run privileged containers": [
        "docker: Error response from daemon: runc create failed: unable to apply caps: operation not permitted\n",
    ],
}


@pytest.mark.parametrize(
    ("cause", "output"), [(cause, output) for cause, outputs in OUTPUTS.items() for output in outputs]
)
def test_what_to_do_follows_from_what_the_engine_printed(cause, output):
    assert explain_build(output, "/usr/bin/docker").startswith(cause)


def test_a_start_is_not_explained_by_what_only_a_build_can_suffer():
    suite_said = "requests.exceptions.ConnectionError: ('Connection aborted.')"

    assert explain_start(suite_said) == f"{suite_said}; its output is above"
    assert explain_start("Error: unresolvable CDI devices nvidia.com/gpu=all").startswith("the engine cannot hand GPUs")


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("", "no reason given"),
        (STEP_FAILED, STEP_FAILED.strip()),
        ("python3: not found\nError: building at STEP {RUN python3}\n\n", "Error: building at STEP {RUN python3}"),
        ((Path(__file__).parents[2] / "docker/Dockerfile").read_text() + "Killed\n", "Killed"),
    ],
    ids=["nothing", "a step", "braces", "the Dockerfile, which engines print next to a failure"],
)
def test_another_failure_is_said_by_the_last_line_of_the_engine(output, said):
    assert explain_build(output, "docker") == f"{said}; its output is above"


def test_a_build_without_a_network_lacks_wheels_and_no_index():
    assert explain_build(NOT_FOUND, "docker", offline=True).startswith("the build is offline: fill docker/wheels")


def test_commands_to_type_are_those_of_the_engine_in_use():
    assert "`/usr/bin/docker system df`" in explain_build("no space left on device", "/usr/bin/docker")


def test_engines_tell_their_own_failures_by_exit_codes_that_the_harness_does_not_use():
    assert set(ENGINE_FAILED).isdisjoint({0, 1, 2, 3, 130})
