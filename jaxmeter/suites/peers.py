"""What peers in PyTorch have in common: when they can run, and the order of their tensors."""

import importlib.util
import shutil

from jaxmeter import Skip

COMPILERS = ("g++", "clang++", "c++")
"""`torch.compile` writes C++ on the CPU and looks for one of these."""


def needs_torch(backend):
    """Skips where PyTorch is not installed, and beside JAX on a GPU or TPU."""
    if importlib.util.find_spec("torch") is None:
        return Skip("PyTorch is not installed: it comes with the extra 'torch'")
    if backend != "cpu":
        return Skip("PyTorch runs on the CPU here, and is compared with JAX on the CPU only")
    return None


def needs_torch_and_compiler(backend):
    """Skips where `torch.compile` cannot run."""
    if (skip := needs_torch(backend)) is not None:
        return skip
    if not any(map(shutil.which, COMPILERS)):
        return Skip(f"torch.compile needs a C++ compiler; found none of {', '.join(COMPILERS)}")
    return None


def leaves_of(tree):
    """Every tensor of {layer: {kind: tensor}}, in a fixed order."""
    return [tensor for layer in tree.values() for tensor in layer.values()]
