"""Helpers of implementations in PyTorch: when they can run, and the order of their tensors."""

import importlib.util
import shutil

from jaxmeter import Skip

COMPILERS = ("g++", "clang++", "c++")
"""On the CPU `torch.compile` generates C++ and needs one of these compilers."""


def needs_torch(backend):
    """Return a Skip where PyTorch is not installed, or where JAX runs on a GPU or TPU."""
    if importlib.util.find_spec("torch") is None:
        return Skip("PyTorch is not installed: install the extra 'torch'")
    if backend != "cpu":
        return Skip("PyTorch runs on the CPU here, so it is compared only with JAX on the CPU")
    return None


def needs_torch_and_compiler(backend):
    """Return a Skip where `torch.compile` cannot run."""
    if (skip := needs_torch(backend)) is not None:
        return skip
    if not any(map(shutil.which, COMPILERS)):
        return Skip(f"torch.compile needs a C++ compiler; found none of {', '.join(COMPILERS)}")
    return None


def leaves_of(tree):
    """Return every tensor of {layer: {kind: tensor}}, in a fixed order."""
    return [tensor for layer in tree.values() for tensor in layer.values()]
