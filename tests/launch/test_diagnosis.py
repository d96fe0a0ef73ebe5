"""What engines and pip print; excerpts, with the names and addresses of other machines."""

import re
from pathlib import Path

import pytest

from jaxmeter.launch.engines import ENGINE_FAILED, UNKNOWN_CAUSE, explain_build, explain_start

BASE = "python:3.13-slim-nonexistent"

# docker 20.10 with BuildKit; newer ones begin with "ERROR: failed to solve: process ... did not complete successfully".
STEP_FAILED = """\
#5 ERROR: executor failed running [/bin/sh -c /opt/venv/bin/pip install --quiet -r /tmp/lock.txt]: exit code: 1
------
 > [2/2] RUN /opt/venv/bin/pip install --quiet -r /tmp/lock.txt:
------
executor failed running [/bin/sh -c /opt/venv/bin/pip install --quiet -r /tmp/lock.txt]: exit code: 1
"""
# pip ends with these two lines whatever kept it from the index.
NOT_FOUND = """\
#5 2.594 ERROR: Could not find a version that satisfies the requirement jax==0.10.2 (from versions: none)
#5 2.594 ERROR: No matching distribution found for jax==0.10.2
"""
RETRYING = (
    "#5 2.589 WARNING: Retrying (Retry(total=0, connect=None, read=None, redirect=None, status=None)) after connection "
    "broken by '{}': /simple/jax/\n"
)
REFUSED = (
    "NewConnectionError('<pip._vendor.urllib3.connection.HTTPConnection object at 0x7feb3a8096a0>: "
    "Failed to establish a new connection: [Errno 111] Connection refused')"
)
NO_NAME = (
    "NewConnectionError('<pip._vendor.urllib3.connection.HTTPSConnection object at 0x7f3c102716a0>: "
    "Failed to establish a new connection: [Errno -2] Name or service not known')"
)
NO_PROXY = f"ProxyError('Cannot connect to proxy.', {REFUSED})"
NOT_TRUSTED = (
    "SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: "
    "self-signed certificate in certificate chain (_ssl.c:1029)'))"
)
SLOW = (
    "ReadTimeoutError(\"HTTPSConnectionPool(host='pypi.example.com', port=443): Read timed out. (read timeout=15.0)\")"
)

OUTPUTS = {
    "the disk is full": [
        """\
#5 2.940     raise ProtocolError("Connection broken: %r" % e, e)
#5 2.940 pip._vendor.urllib3.exceptions.ProtocolError: \
("Connection broken: OSError(28, 'No space left on device')", OSError(28, 'No space left on device'))
"""
        + STEP_FAILED,
        "#5 31.02 ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n"
        + STEP_FAILED,
        (
            "Error: committing container for step {Command:run}: writing blob: storing blob to file "
            '"/var/tmp/container_images_storage/1": write /var/tmp/container_images_storage/1: no space left on '
            "device\n"
        ),
        "failed to solve: ResourceExhausted: mkdir /var/lib/docker/overlay2/x: disk quota exceeded\n",
    ],
    "the registry shows a certificate": [
        (
            "failed to solve with frontend dockerfile.v0: failed to create LLB definition: failed to do request: "
            'Head "https://registry-1.docker.io/v2/library/python/manifests/3.13-slim-nonexistent": '
            "x509: certificate signed by unknown authority\n"
        ),
        (
            "Error: creating build container: initializing source docker://python:3.13-slim-nonexistent: pinging "
            "container "
            'registry registry-1.docker.io: Get "https://registry-1.docker.io/v2/": tls: failed to verify certificate: '
            "x509: certificate signed by unknown authority\n"
        ),
    ],
    "the package index shows a certificate": [RETRYING.format(NOT_TRUSTED) + NOT_FOUND + STEP_FAILED],
    "the package index serves other files": [
        """\
#5 2.380 ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. If you have updated the package \
versions, please update the hashes. Otherwise, examine the package contents carefully; someone may have tampered with \
them.
#5 2.380     six==1.16.0 from https://files.pythonhosted.org/packages/d9/5a/e7c3/six-1.16.0-py2.py3-none-any.whl \
(from -r /tmp/lock.txt (line 1)):
#5 2.380         Expected sha256 0000000000000000000000000000000000000000000000000000000000000000
#5 2.380              Got        8abb2f1d86890a2dfb989f9a77cfcfd3e47c2a354b01111771326f8aa26e0254
"""
        + STEP_FAILED,
    ],
    f"the base image {BASE} is not here": [
        """\
#3 [internal] load metadata for docker.io/library/python:3.13-slim-nonexistent
#3 ERROR: failed to do request: Head "https://registry-1.docker.io/v2/library/python/manifests/3.13-slim-nonexistent": \
dial tcp: lookup registry-1.docker.io on 192.0.2.53:53: no such host
------
 > [internal] load metadata for docker.io/library/python:3.13-slim-nonexistent:
------
failed to solve with frontend dockerfile.v0: failed to create LLB definition: failed to do request: Head \
"https://registry-1.docker.io/v2/library/python/manifests/3.13-slim-nonexistent": dial tcp: lookup \
registry-1.docker.io on 192.0.2.53:53: no such host
""",
        """\
ERROR: failed to solve: python:3.13-slim-nonexistent: failed to resolve source metadata for \
docker.io/library/python:3.13-slim-nonexistent: docker.io/library/python:3.13-slim-nonexistent: not found
""",
        """\
STEP 1/2: FROM python:3.13-slim-nonexistent
Resolved "python" as an alias (/etc/containers/registries.conf.d/shortnames.conf)
Trying to pull docker.io/library/python:3.13-slim-nonexistent...
Error: creating build container: initializing source docker://python:3.13-slim-nonexistent: pinging container \
registry registry-1.docker.io: Get "https://registry-1.docker.io/v2/": dial tcp: lookup registry-1.docker.io on \
192.0.2.53:53: no such host
""",
        (
            'Error: short-name "team/python:3.13" did not resolve to an alias and no unqualified-search registries are '
            'defined in "/etc/containers/registries.conf"\n'
        ),
        (
            'Error response from daemon: Get "https://quay.io/v2/": dial tcp: lookup quay.io on 192.0.2.53:53: '
            "no such host\n"
        ),
        (
            "Error response from daemon: manifest for python:3.13-slim-nonexistent not found: manifest unknown: "
            "manifest unknown\n"
        ),
        (
            "Error response from daemon: pull access denied for team/python, repository does not exist or may require "
            "'docker login': denied: requested access to the resource is denied\n"
        ),
        (
            "failed to solve: python:3.13-slim-nonexistent: failed to authorize: failed to fetch anonymous token: "
            'Get "https://auth.docker.io/token?scope=x": dial tcp: i/o timeout\n'
        ),
    ],
    f"the base image {BASE} has no Python": [
        (
            "#5 0.148 /bin/sh: 1: python3: not found\n#5 ERROR: executor failed running [/bin/sh -c python3 -m venv "
            "/opt/venv]: exit code: 127\n"
        ),
        (
            "STEP 3/9: RUN python3 -m venv /opt/venv\n/bin/sh: 1: python3: not found\nError: building at STEP "
            '"RUN python3 '
            '-m venv /opt/venv": while running runtime: exit status 127\n'
        ),
        (
            "#6 0.31 The virtual environment was not created successfully because ensurepip is not available.  On "
            "Debian/Ubuntu systems, you need to install the python3-venv package using the following command.\n"
        ),
    ],
    "the package index (or registry) refuses these credentials": [
        "#5 2.573 WARNING: 401 Error, Credentials not correct for https://pypi.example.com/simple/jax/\n"
        + NOT_FOUND
        + STEP_FAILED,
        """\
#5 2.527 User for pypi.example.com: ERROR: Exception:
#5 2.532 Traceback (most recent call last):
#5 2.532   File "/opt/venv/lib/python3.13/site-packages/pip/_internal/utils/misc.py", line 243, in ask_input
#5 2.532     return input(message)
#5 2.532 EOFError: EOF when reading a line
"""
        + STEP_FAILED,
        (
            "#5 3.1 ERROR: HTTP error 403 while getting https://pypi.example.com/jax-0.10.2-py3-none-any.whl\n"
            "#5 3.1 ERROR: Could not install requirement jax==0.10.2 because of HTTP error 403 Client Error: "
            "Forbidden for "
            "url: https://pypi.example.com/jax-0.10.2-py3-none-any.whl\n"
        ),
    ],
    "the package index did not answer": [
        *[RETRYING.format(reason) + NOT_FOUND + STEP_FAILED for reason in (REFUSED, NO_NAME, NO_PROXY, SLOW)],
        "#5 9.1 pip._vendor.urllib3.exceptions.ProtocolError: ('Connection broken: IncompleteRead(1 bytes read, "
        "2 more expected)', IncompleteRead(1 bytes read, 2 more expected))\n" + STEP_FAILED,
    ],
    "the package index offers no locked version of a package.": [
        NOT_FOUND + STEP_FAILED,
        "#5 2.437 ERROR: Could not find a version that satisfies the requirement six==99.0 (from versions: 1.16.0, "
        "1.17.0)\n#5 2.437 ERROR: No matching distribution found for six==99.0\n" + STEP_FAILED,
        NOT_FOUND.replace("2.594", "0.401") + STEP_FAILED,
    ],
    "the engine cannot hand GPUs": [
        'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].\n',
        "docker: nvidia.com/gpu=all is not an absolute path.\nSee 'docker run --help'.\n",
        "Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all\n",
        (
            "docker: Error response from daemon: failed to create task for container: failed to create shim task: OCI "
            "runtime create failed: runc create failed: unable to start container process: error during "
            "container init: "
            "error running prestart hook #0: exit status 1, stdout: , stderr: Auto-detected mode as 'legacy'\n"
            "nvidia-container-cli: initialization error: nvml error: driver not loaded\n"
        ),
        "docker: Error response from daemon: failed to discover GPU vendor from CDI: no known GPU vendor found\n",
    ],
    "no permission to use the engine": [
        (
            "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: "
            'Get "http://%2Fvar%2Frun%2Fdocker.sock/v1.24/info": dial unix /var/run/docker.sock: connect: permission '
            "denied\n"
        ),
    ],
    "the engine does not answer any more": [
        "ERROR: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?\n",
        (
            "failed to connect to the docker API at unix:///var/run/docker.sock; check if the path is correct "
            "and if the "
            "daemon is running: dial unix /var/run/docker.sock: connect: no such file or directory\n"
        ),
        (
            'Error: unable to connect to Podman socket: Get "http://d/v4.3.1/libpod/_ping": dial unix '
            "/run/podman/podman.sock: connect: no such file or directory\n"
        ),
    ],
    "this machine does not let the engine run privileged containers": [
        (
            "docker: Error response from daemon: failed to create shim task: OCI runtime create failed: runc create "
            "failed: unable to start container process: unable to apply caps: operation not permitted: unknown.\n"
        ),
    ],
    "podman lacks its init program": [
        "Error: container-init binary not found on the host: stat /usr/libexec/podman/catatonit: no such file\n"
    ],
    "this machine does not let the engine raise limits": [
        (
            "Error: runc: runc create failed: unable to start container process: error during container init: error "
            "setting rlimits for ready process: error setting rlimit type 7: operation not permitted: OCI "
            "permission denied\n"
        ),
    ],
}


def explained(output, *, base=BASE, offline=False):
    return explain_build(output, client="/usr/bin/docker", base=base, lock="gpu", offline=offline)


@pytest.mark.parametrize(
    ("cause", "output"), [(cause, output) for cause, outputs in OUTPUTS.items() for output in outputs]
)
def test_the_cause_of_a_failure_is_found_in_what_the_engine_printed(cause, output):
    assert explained(output).startswith(cause)


@pytest.mark.parametrize("output", [outputs[0] for outputs in OUTPUTS.values()])
def test_whatever_the_cause_is_the_words_are_filled_in(output):
    assert not re.search(r"[{}]", explained(output))


def test_a_start_is_not_explained_by_what_only_a_build_can_suffer():
    suite_said = "requests.exceptions.ConnectionError: Max retries exceeded with url: /data"

    assert explain_start(suite_said) == UNKNOWN_CAUSE
    assert explain_start("Error: unresolvable CDI devices nvidia.com/gpu=all").startswith("the engine cannot hand GPUs")


@pytest.mark.parametrize(
    "output",
    [
        "",
        STEP_FAILED,
        (
            "#6 ERROR: failed to walk /var/lib/docker/tmp/buildkit-mount1/docker: lstat docker: no such file or "
            "directory\n"
            "failed to compute cache key: failed to walk /var/lib/docker/tmp/buildkit-mount1/docker\n"
        ),
        (
            "failed to solve with frontend dockerfile.v0: failed to create LLB definition: dockerfile parse "
            "error line 2: "
            "unexpected key 'size' in 'size=1048576'\n"
        ),
        (
            "docker: Error response from daemon: error gathering device information while adding custom device "
            '"/dev/accel0": no such file or directory.\n'
        ),
        (
            'docker: Error response from daemon: invalid mount config for type "bind": bind source path does not '
            "exist: "
            "/nonexistent.\nSee 'docker run --help'.\n"
        ),
        "#8 12.1 Killed\n" + STEP_FAILED,
    ],
)
def test_an_unknown_failure_is_given_no_cause(output):
    assert explained(output) == UNKNOWN_CAUSE


def test_the_dockerfile_which_engines_print_beside_a_failure_is_no_cause():
    dockerfile = (Path(__file__).parents[2] / "docker/Dockerfile").read_text()

    assert explained(dockerfile) == UNKNOWN_CAUSE


def test_commands_to_type_are_those_of_the_engine_in_use():
    assert "`/usr/bin/docker system df`" in explained("no space left on device")


def test_a_missing_package_is_to_be_compared_with_the_lock_that_was_installed():
    assert "docker/locks/gpu.txt" in explained(NOT_FOUND)


def test_an_offline_build_lacks_wheels_rather_than_an_index():
    assert "the build is offline: fill docker/wheels with `wheels`" in explained(NOT_FOUND, offline=True)
    assert "offline" not in explained(NOT_FOUND)


def test_engines_tell_their_own_failures_by_exit_codes_that_the_harness_does_not_use():
    assert set(ENGINE_FAILED).isdisjoint({0, 1, 2, 3, 130})
