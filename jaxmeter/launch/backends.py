"""The differences of backends for the launcher: one row of one table for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jaxmeter.launch.containers import Devices
from jaxmeter.launch.nvidia import CUDA_LOCKS, NVIDIA_GPUS
from jaxmeter.launch.tpu import TPUS


@dataclass(frozen=True)
class Option:
    """An option of the launcher that not every backend has.

    Args:
      name: As it is typed.
      locks: The locks that it chooses, {its value: the lock}; empty if it takes no value.
      lock: The lock that it chooses without a value; None if it does not choose a lock.
      needs_container: Whether it only applies to a container.
      beside_image: Why it cannot be combined with `--image`, as the end of a sentence that begins with `--image`.
    """

    name: str
    locks: Mapping[str, str] = field(default_factory=dict)
    lock: str | None = None
    needs_container: bool = False
    beside_image: str = ""


@dataclass(frozen=True)
class BackendNeeds:
    """The needs of a backend's measurements that the launcher provides.

    Args:
      name: The backend's name in the command line.
      lock: The lock that is installed for it, unless an option chooses another one.
      devices: The devices that it runs on.
      options: Options that it has in addition to those of every backend.
      shared_memory: Size of /dev/shm in its containers; docker's 64 MiB are too small for collectives.
      network: Network of its containers; a TPU's library asks the machine's metadata server for its topology.
      cluster_device: A cluster's name for its devices; empty if a job requests none.
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

OPTIONS: dict[str, Option] = {option.name: option for needs in BACKENDS.values() for option in needs.options}
"""The options of all backends."""
