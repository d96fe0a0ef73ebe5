"""Errors that `jax.experimental.checkify` returns: JAX's own arrays among the outputs of a user's function."""

from __future__ import annotations

from typing import Any

import jax
from jax.experimental import checkify


def is_error(item: Any) -> bool:
    """Return whether an object is an error value of checkify."""
    return isinstance(item, checkify.Error)


def list_error_leaves(tree: Any) -> list[bool]:
    """Return for each leaf of a tree whether it belongs to an error value."""
    nodes = jax.tree.leaves(tree, is_leaf=is_error)
    return [is_error(node) for node in nodes for _ in jax.tree.leaves(node)]


def list_predicates(error: Any) -> list[Any]:
    """Return which checks of an error value failed. Codes are left out: they differ from trace to trace."""
    return [leaf for leaf in jax.tree.leaves(error) if leaf.dtype == bool]
