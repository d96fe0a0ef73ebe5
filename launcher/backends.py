"""What tells one backend from another to the launcher: one row of one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from launcher.devices import Devices
from launcher.nvidia import CUDA_LOCKS, NVIDIA_GPUS
from launcher.tpu import TPUS


@dataclass(frozen=True)
class Option:
    """An option of the launcher that not every backend has.

    Args:
      name: As it is typed.
      locks: What it chooses, {its value: the lock}; empty where it takes no value.
      lock: The lock that it chooses without a value; None where it is not about locks.
      needs_container: Whether it is about the container.
      beside_image: Why it cannot be given beside `--image`, as the sentence that begins with `--image` goes on.
    """

    name: str
    locks: Mapping[str, str] = field(default_factory=dict)
    lock: str | None = None
    needs_container: bool = False
    beside_image: str = ""


@dataclass(frozen=True)
class BackendNeeds:
    """What measuring on a backend needs of the launcher.

    Args:
      name: The backend, as the command line has it.
      lock: What is installed for it, unless an option chooses another lock.
      devices: What it runs on.
      options: Options that it has beside those that every backend has.
      shared_memory: Size of /dev/shm in its containers; docker's 64 MiB are too small for collectives.
      network: Network of its containers; a TPU's library asks the machine's metadata server for its topology.
      cluster_device: What a cluster calls its devices; empty where there are none to ask for.
    """

    name: str
    lock: str
    devices: Devices
    options: tuple[Option, ...] = ()
    shared_memory: str = "1g"
    network: str = "none"
    cluster_device: str = ""


BACKENDS = {
    needs.name: needs
    for needs in (
        BackendNeeds(
            "cpu",
            lock="cpu",
            devices=Devices("the CPU"),
            options=(Option("--torch", lock="cpu-torch", beside_image="is used as it is, with PyTorch or without"),),
        ),
        BackendNeeds(
            "gpu",
            lock="gpu",
            devices=NVIDIA_GPUS,
            options=(
                Option("--cuda", locks=CUDA_LOCKS, beside_image="brings its own CUDA"),
                Option("--profile-privileged", needs_container=True),
            ),
            cluster_device="nvidia.com/gpu",
        ),
        BackendNeeds(
            "tpu",
            lock="tpu",
            devices=TPUS,
            options=(Option("--privileged", needs_container=True),),
            shared_memory="100g",
            network="host",
            cluster_device="google.com/tpu",
        ),
    )
}

DEFAULT_BACKEND = "cpu"
"""What the doctor examines, and a self-test is of, where nothing is named."""

OPTIONS = {option.name: option for needs in BACKENDS.values() for option in needs.options}
"""The options of all backends."""
