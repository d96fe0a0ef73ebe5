"""Where a run is made: the record of a machine and its packages, without secrets, and its name."""

from __future__ import annotations

import getpass
import hashlib
import importlib.metadata
import os
import platform
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jaxmeter.harness.machine.nvml import find_driver
from jaxmeter.harness.machine.platforms import THREAD_VARIABLES, find_device
from jaxmeter.harness.record import Environment, Param
from jaxmeter.harness.record.wording import counted

HIDDEN = "***"

SHORTEST_SECRET = 6
"""Shortest value of a variable, in characters, that is searched in texts: shorter values occur there by chance."""

_SECRET = re.compile(
    r"""KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH|API|SIGNATURE|WEBHOOK
    | (?<![A-Z])(?:BEARER|COOKIES?|CREDS?|DSN|JWT|OTP|PAT|PWD|SAS|SESSION|SIG)(?![A-Z])  # PATH and DESIGN are none""",
    flags=re.IGNORECASE | re.VERBOSE,
)
_NO_SECRET = re.compile(r"(?:OLD)?PWD|XDG_\w+|DBUS_\w+|DESKTOP_SESSION|SESSION_MANAGER")
"""Variables of shells and desktops: the working folder, the kind of session."""

_SWITCH = ("", "0", "1", "true", "false", "True", "False")
"""No secret: jax's own switches have such words in their names too, as JAX_COMPILER_ENABLE_REMAT_PASS."""

_SECRET_SETTING = re.compile(
    "key|token|secret|passw|passphrase|credential|auth|signature|webhook|^pass$"
    "|(?<![a-z])(?:bearer|cookies?|creds?|dsn|jwt|pat|pwd|session|sig)(?![a-z])",
    flags=re.IGNORECASE,
)
"""The name of a part of a value. XLA's flags speak of passes, and mean the compiler's."""

_BETWEEN_SETTINGS = re.compile(r"([\s&,;?=]+)")
_WHO = re.compile(r"(?<=://)[^\s/]+(?=@)|(?<![^\s/=,@])[^\s/=,@]+(?=@)")
"""Name and password before the host of an address. Each begins at one place, so that long values cost no more."""

_WHO_IN_TEXT = re.compile(r"(?<=://)[^\s/@]+(?=@)")
"""The same in a text, where an @ alone is a product of matrices."""

_SETTING_IN_TEXT = re.compile(
    r"""(
        (?:secret|passw(?:or)?d|passphrase|credentials?|authorization|(?:api|access|private)[_-]?key|x-amz-\w+
        |(?<![a-z])(?:pwd|dsn|cookie|jwt|webhook|session[_-]?(?:id|key)))
        (?:["']?[ ]?[=:][ ]?["']?)(?:(?:bearer|basic)[ ])?
        | token(?:["'][ ]?:|[ ]?=)[ ]?["']?
        | (?<=[?&])sig=
    )[^\s"'&,;)\]}]{6,}""",
    flags=re.IGNORECASE | re.VERBOSE,
)
"""`password=…`, `"token": "…"`, `Authorization: Bearer …`: with words of its own, since a jax text has keys and
tokens that are none."""


_NOT_WITHIN = r"(?:(?<![A-Za-z0-9])|(?<=\\n))"
_KNOWN_FORM = re.compile(
    r"-----BEGIN[ ][A-Z0-9 ]{0,40}PRIVATE[ ]KEY[\s\S]*?(?:-----END[ ][A-Z0-9 ]{0,40}PRIVATE[ ]KEY(?:[ ]BLOCK)?-----|\Z)"
    rf"""|{_NOT_WITHIN}(?:
        A[KS]IA[A-Za-z0-9]{{16,}}  # Amazon
        | gh[oprsu]_[A-Za-z0-9_]{{16,}} | github_pat_[A-Za-z0-9_]{{16,}}
        | gl(?:pat|dt|rt|ptt|cbt|ft|soat)-[\w-]{{16,}}  # GitLab
        | xox[a-z]-[\w-]{{10,}} | xapp-[\w-]{{10,}} | hooks\.slack\.com/services/[\w/]{{10,}}
        | AIza[\w-]{{30,}} | ya29\.[\w-]{{16,}} | GOCSPX-[\w-]{{16,}}  # Google
        | hf_[A-Za-z0-9]{{24,}} | pypi-[\w-]{{24,}} | npm_[A-Za-z0-9]{{24,}} | dckr_pat_[\w-]{{16,}}
        | sk-(?=[\w-]{{0,60}}\d)[\w-]{{20,}}  # OpenAI, Anthropic, Stripe
        | [Bb]earer[ ](?=[\w.~+/-]{{0,60}}\d)[\w.~+/-]{{16,}}=*
    )
    | (?<![\w-])eyJ[\w-]{{8,}}\.[\w-]{{4,}}(?:\.[\w-]*)?  # a JSON web token""",
    flags=re.ASCII | re.VERBOSE,
)
"""What issuers of keys and tokens make recognisable. Not within a longer word: base64 holds anything by chance."""


def is_secret(name: str, value: str) -> bool:
    """Return whether a variable's value is a secret, by the variable's name."""
    return value not in _SWITCH and _SECRET.search(name) is not None and not _NO_SECRET.fullmatch(name)


def hide_in_value(value: str) -> str:
    """Return a variable's value without the names, passwords and tokens that addresses and flags may hold."""
    parts = _BETWEEN_SETTINGS.split(_WHO.sub(HIDDEN, value))
    for index in range(2, len(parts), 2):
        if parts[index - 1].startswith("=") and _SECRET_SETTING.search(parts[index - 2]):
            parts[index] = HIDDEN
    return "".join(parts)


def hide_in_text(text: str, variables: Mapping[str, str]) -> str:
    """Return a text without values of secret variables, what it calls a password or a key, and known forms of keys."""
    secrets = {value for name, value in variables.items() if len(value) >= SHORTEST_SECRET and is_secret(name, value)}
    for value in sorted(secrets, key=len, reverse=True):  # one may be a part of another
        text = text.replace(value, HIDDEN)
    return _KNOWN_FORM.sub(HIDDEN, _SETTING_IN_TEXT.sub(rf"\g<1>{HIDDEN}", _WHO_IN_TEXT.sub(HIDDEN, text)))


PACKAGES = (
    "jax",
    "jaxlib",
    "libtpu",
    "jax-cuda12-plugin",
    "jax-cuda12-pjrt",
    "jax-cuda13-plugin",
    "jax-cuda13-pjrt",
    "nvidia-cudnn-cu12",
    "nvidia-cudnn-cu13",
    "nvidia-cublas",
    "numpy",
    "scipy",
    "ml-dtypes",
    "flax",
    "optax",
    "torch",
)
"""Whatever of these is installed is recorded: they decide which program runs."""

_VARIABLE_PREFIXES = ("JAX_", "XLA_")
_VARIABLES = frozenset(
    {
        "CUDA_VISIBLE_DEVICES",
        "JAXMETER_DATA",
        "LD_PRELOAD",
        "LIBTPU_INIT_ARGS",
        "MALLOC_ARENA_MAX",
        "MKL_NUM_THREADS",
        "NVIDIA_TF32_OVERRIDE",
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "TF_CPP_MIN_LOG_LEVEL",
        "TPU_ACCELERATOR_TYPE",
        "TPU_CHIPS_PER_PROCESS_BOUNDS",
        "TPU_MEGACORE",
        "TPU_PROCESS_BOUNDS",
        "TPU_VISIBLE_DEVICES",
    }
)
FLAGS_OF_XLA = "XLA_FLAGS"
_DUMP_FLAG = re.compile(r"(?<=--)(xla\w*_dump_(?:\w+_)?(?:to|dir|path|file)=)\S+")
_DUMP_VARIABLE = "JAX_DUMP_IR_TO"
"""Where is written down what is compiled: a folder is somebody's own, and steers nothing."""

LONGEST_WORDS = 200
LONGEST_SEARCHED = 40_000
"""Characters of an error in which secrets are looked for, ten times what is kept. Of 50 million, the search would take
longer than a process may."""

_CODE = Path(__file__).parents[2]
"""The checkout, or where packages are installed: a neighbour of the harness is named from here."""

_NAME_ENDS = r"(?![\w-]|\.[\w.-])"


def describe_environment(jax: Any) -> Environment:
    """Reads the machine, the packages and the devices that jax has.

    Args:
      jax: The imported module, its backend initialised.
    """
    devices = jax.devices()
    processor = _processor()
    revision, dirty = _revision(os.environ)
    return Environment(
        python=platform.python_version(),
        system=f"{platform.system()} {platform.release()}",
        machine=platform.machine(),
        packages=list_packages(),
        device_kind=devices[0].device_kind,
        device_name=processor if is_processor(devices[0]) else devices[0].device_kind,
        device_count=len(devices),
        platform_version=" ".join(devices[0].client.platform_version.split()),
        driver=find_driver() if devices[0].platform == "gpu" else None,
        processor=processor,
        cores=os.cpu_count() or 1,
        allowed_cores=allowed_cores(),
        cpu_quota=cpu_quota(),
        governor=_text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        memory_bytes=_memory_bytes(),
        load_average=os.getloadavg()[0],
        threads={name: _whole(os.environ.get(name)) for name in THREAD_VARIABLES},
        variables=recorded_variables(os.environ),
        x64=bool(jax.config.jax_enable_x64),
        matmul_precision=jax.config.jax_default_matmul_precision,
        host=os.environ.get("JAXMETER_HOST") or hashlib.sha256(platform.node().encode()).hexdigest()[:8],
        git_revision=revision,
        git_dirty=dirty,
        image=os.environ.get("JAXMETER_IMAGE"),
        lock_sha256=os.environ.get("JAXMETER_LOCK_SHA256"),
        device_memory_bytes=device_memory_bytes(devices[0]),
        **_find_peaks(devices[0].device_kind),
    )


def _find_peaks(kind: str) -> dict[str, Any]:
    """Return the fields of an environment that the table of devices has."""
    device = find_device(kind)
    if device is None:
        return {}
    return {
        "peak_flops": device.peak_flops,
        "peak_bytes_per_s": device.peak_bytes_per_s,
        "peaks_source": device.source,
    }


def device_memory_bytes(device: Any) -> int | None:
    """What programs may use of a device: its allocator's limit; of a CPU the machine's memory, or a control group's.

    Where a CPU stands for several devices, each has its share.
    """
    statistics = device.memory_stats() or {}
    if "bytes_limit" in statistics:
        return int(statistics["bytes_limit"])
    if not is_processor(device):
        known = find_device(device.device_kind)
        return None if known is None else known.memory_bytes
    memory = least_memory_bytes()
    return None if memory is None else memory // device.client.device_count()


def is_processor(device: Any) -> bool:
    """Whether jax's device is the machine's own processor, with the machine's memory."""
    return bool(device.platform == "cpu")


def allowed_cores() -> int:
    """Cores that this process may use (affinity), not those that the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def paid_cores(root: Path = Path("/")) -> float:
    """Cores that this process can keep busy: those it may use, or the part of them that its control groups pay for."""
    quota = cpu_quota(root)
    return allowed_cores() if quota is None else min(allowed_cores(), quota)


def usable_cores(root: Path = Path("/")) -> int:
    """The whole ones of them, at least one.

    With more threads than that it would be stopped in the middle of its work, whenever the quota is used up.
    """
    return max(1, int(paid_cores(root)))


def recorded_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """The allow-list: what steers JAX and XLA, never a secret, also none within a value; home as `~`."""
    return {
        name: HIDDEN if name == _DUMP_VARIABLE else make_private(_DUMP_FLAG.sub(rf"\1{HIDDEN}", hide_in_value(value)))
        for name, value in sorted(variables.items())
        if (name in _VARIABLES or name.startswith(_VARIABLE_PREFIXES)) and not is_secret(name, value)
    }


def recorded_options(options: Mapping[str, Param]) -> dict[str, Param]:
    """Compiler options as a record may hold them: a text as if it were a flag of XLA_FLAGS."""
    return {
        name: recorded_variables({FLAGS_OF_XLA: f"--{name}={value}"})[FLAGS_OF_XLA].partition("=")[2]
        if isinstance(value, str)
        else value
        for name, value in options.items()
    }


def describe_error(error: BaseException) -> str:
    """An error's own words on one line, shortened, as a record may hold them."""
    return make_private(find_words(error))[:LONGEST_WORDS]


def find_words(error: BaseException) -> str:
    """An error's own words on one line, with their secrets: at most LONGEST_SEARCHED characters."""
    return " ".join(str(error)[:LONGEST_SEARCHED].split())


def make_private(text: str) -> str:
    """Text as a record may hold it: without secrets, and with private paths as `make_paths_private` writes them."""
    return make_paths_private(hide_in_text(text, os.environ))


def make_paths_private(text: str) -> str:
    """Text with the code's paths from its package on, home as `~`, the user's name as `user` where it is a folder.

    Of a path that a process opens, this alone: a part that some variable calls a secret has to stay.
    """
    for written in {str(_CODE), _octal(str(_CODE))}:
        text = text.replace(f"{written}{os.sep}", "")
    home = str(Path.home())
    if len(home) > 1:
        for written in {home, _octal(home)}:
            text = re.sub(re.escape(written) + _NAME_ENDS, "~", text)
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container may run a uid without a name
        return text
    for written in {user, _octal(user)}:
        text = re.sub("/" + re.escape(written) + _NAME_ENDS, "/user", text)
    return text


def _octal(text: str) -> str:
    """Return a text as XLA writes it: characters outside ASCII byte by byte, in octal."""
    return "".join(chr(byte) if byte < 128 else f"\\{byte:03o}" for byte in text.encode())


def list_packages() -> dict[str, str]:
    """Return the versions of those recorded packages that are installed."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def _processor() -> str:
    for line in (_text("/proc/cpuinfo") or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "Model"):
            return value.strip()
    return platform.processor() or platform.machine()


def cpu_quota(root: Path = Path("/")) -> float | None:
    """Return how many cores' time this process's control groups allow (cgroup v2 and v1); None without a limit.

    A group has its own limit and those of its ancestors: the smallest counts.
    """
    return min((cores for _, cores in _list_quotas(root)), default=None)


def list_limited_groups(root: Path = Path("/")) -> list[Path]:
    """Return the folders of this process's control groups that have a quota; these count how long it was used up."""
    return [group for group, _ in _list_quotas(root)]


def _list_quotas(root: Path) -> Iterator[tuple[Path, float]]:
    """Yield every limited control group, with the number of cores that it allows."""
    for line in (_text(root / "proc/self/cgroup") or "0::/\n1:cpu:/").splitlines():
        number, controllers, path = (*line.split(":", 2), "", "")[:3]
        if number == "0":
            groups = _groups(root / "sys/fs/cgroup", path)
            limits = [(group, (_text(group / "cpu.max") or "").split()) for group in groups]
        elif "cpu" in controllers.split(","):
            names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
            groups = _groups(root / "sys/fs/cgroup/cpu", path)
            limits = [(group, [_text(group / name) or "" for name in names]) for group in groups]
        else:
            continue
        for group, pair in limits:
            if len(pair) == 2 and all(map(str.isdigit, pair)):
                yield group, int(pair[0]) / int(pair[1])


def least_memory_bytes(root: Path = Path("/")) -> int | None:
    """Return the machine's memory, or less if this process's control groups allow less (cgroup v2 and v1)."""
    limits = [_memory_bytes()]
    for line in (_text(root / "proc/self/cgroup") or "0::/\n1:memory:/").splitlines():
        number, controllers, path = (*line.split(":", 2), "", "")[:3]
        if number == "0":
            limits += [_whole(_text(group / "memory.max")) for group in _groups(root / "sys/fs/cgroup", path)]
        elif "memory" in controllers.split(","):
            places = _groups(root / "sys/fs/cgroup/memory", path)
            limits += [_whole(_text(group / "memory.limit_in_bytes")) for group in places]
    return min((limit for limit in limits if limit is not None), default=None)


def _groups(top: Path, path: str) -> Iterator[Path]:
    """Yield a control group and its ancestors; in a container only the top exists, which is the container's group."""
    for depth in range(len(parts := [part for part in path.split("/") if part]) + 1):
        yield top.joinpath(*parts[:depth])


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None


def _revision(variables: Mapping[str, str]) -> tuple[str | None, bool | None]:
    """Return the revision of the working folder; for a container, which has no git, from a variable of the launcher."""
    if revision := variables.get("JAXMETER_REVISION"):
        return revision.removesuffix("-dirty"), revision.endswith("-dirty")
    return _git()


def _git() -> tuple[str | None, bool | None]:
    """Return the revision of the working folder, and whether tracked files differ; None outside a repository."""
    try:
        revision = _command("git", "rev-parse", "HEAD")
        return revision.strip(), bool(_command("git", "status", "--porcelain", "--untracked-files=no").strip())
    except (OSError, subprocess.SubprocessError):
        return None, None


def _command(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=10).stdout


def _text(path: str | Path) -> str | None:
    try:
        return Path(path).read_text(encoding="utf8").strip()
    except OSError:
        return None


def _whole(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


LONGEST_NAME = 100
"""Characters of a given name, which is part of a sentence of the page."""


def name_machine(environment: Environment) -> str:
    """Return a name like `Intel(R) Xeon(R) Processor, 2 cores, 1 x cpu`, without host name and versions.

    The parts are those that determine how much times scatter.
    """
    processor, cores = " ".join(environment.processor.split()), counted(environment.allowed_cores, "core")
    return f"{processor}, {cores}, {environment.device_count} x {environment.device_kind}"


def is_name(text: str) -> bool:
    """Return whether a text can be the name of a machine: printable, not blank and not too long."""
    return text.isprintable() and 0 < len(text.strip()) <= LONGEST_NAME
