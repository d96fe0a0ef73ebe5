"""The arguments of a case: made, placed, as shapes, as NumPy's; and which leaves are static."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial, wraps
from types import ModuleType
from typing import Any

import jax
import numpy

from jaxmeter.harness.declare.declaration import call_with, find_wanted_params
from jaxmeter.harness.declare.workload import Workload
from jaxmeter.harness.programs.older_jax import REFERENCES, is_committed
from jaxmeter.harness.record import Param

INPUT_SEED = 0
"""Data values change speed (and power), so every process of every run gets the same."""


class RefusedError(Exception):
    """A variant is not run, which says nothing of the code that is measured; the message says why and what to do."""


def make_inputs(workload: Workload, params: dict[str, Param]) -> tuple[Any, ...]:
    """A workload's arguments, ready where they belong; of a stream, a tuple of argument tuples."""
    return place_inputs(workload, draw_inputs(workload, params))


def draw_inputs(workload: Workload, params: dict[str, Param]) -> Any:
    """Return what the suite's inputs() makes."""
    return call_with(workload.declaration.inputs, params, jax.random.key(INPUT_SEED))


def place_inputs(workload: Workload, made: Any) -> tuple[Any, ...]:
    """Return what inputs() has made, ready where it belongs; of a stream, a tuple of argument tuples."""
    on_host = workload.find_positions(workload.declaration.needs.host)

    def place(arguments: Any) -> tuple[Any, ...]:
        return tuple(
            jax.tree.map(partial(_place_array, numpy.asarray if position in on_host else jax.numpy.asarray), argument)
            for position, argument in enumerate(as_tuple(arguments))
        )

    arguments = tuple(map(place, made)) if workload.declaration.stream else place(made)
    return tuple(jax.block_until_ready(arguments))


def _place_array(place: Callable[[Any], Any], leaf: Any) -> Any:
    """An array where it belongs. Python's numbers, which JAX types weakly, and static leaves stay what they are."""
    return place(leaf) if is_array(leaf) else leaf


def make_shapes(workload: Workload, params: dict[str, Param]) -> tuple[Any, ...]:
    """The same as shapes and dtypes; nothing is made.

    Raises:
      Whatever inputs() has against being traced: they may be made in any way, also without JAX.
    """
    arguments: list[Arguments] = []

    def make(key: Any) -> tuple[Any, ...]:
        made = call_with(workload.declaration.inputs, params, key)
        arguments.append(split(tuple(map(as_tuple, made)) if workload.declaration.stream else as_tuple(made)))
        return arguments[0].traced[0]

    shapes = jax.eval_shape(make, jax.random.key(INPUT_SEED))
    return arguments[0].take_back(shapes, {})[0]


def as_tuple(arguments: Any) -> tuple[Any, ...]:
    """What inputs() returns, one array or a tuple of arguments, as a tuple."""
    return arguments if isinstance(arguments, tuple) else (arguments,)


def choose_static(function: Callable[..., Any], params: dict[str, Param]) -> dict[str, Param]:
    """The params that a function takes."""
    return {name: params[name] for name in find_wanted_params(function, params)}


def as_numpy(leaf: Any) -> Any:
    """An array as NumPy's. A random key stays what it is, as NumPy has no such thing, and so does what is no array."""
    return numpy.asarray(leaf) if is_array(leaf) and not _is_key(leaf) else leaf


def widest(leaf: Any) -> Any:
    """An array as NumPy's widest of its kind: float64, int64, complex128, bool."""
    array = as_numpy(leaf)
    if not isinstance(array, numpy.ndarray) or array.dtype == bool:
        return array
    if jax.numpy.issubdtype(array.dtype, jax.numpy.complexfloating):
        return array.astype(numpy.complex128)
    if jax.numpy.issubdtype(array.dtype, jax.numpy.integer):
        return array.astype(numpy.int64)
    return array.astype(numpy.float64)


def hash_arguments(arrays: Any) -> str:
    """What all arrays in a tree hold, as a hash: equal in two environments that have made the same."""
    digest = hashlib.sha256()
    for leaf in jax.tree.leaves(arrays):
        array = _find_numbers(leaf)
        digest.update(f"{array.dtype} {array.shape}".encode())
        digest.update(_name_object(leaf).encode() if array.dtype == object else array.tobytes())
    return digest.hexdigest()


def _name_object(leaf: Any) -> str:
    """Text of a leaf that is no array, without its address: equal in two processes."""
    named = (getattr(leaf, "__module__", None), getattr(leaf, "__qualname__", None))
    return re.sub(r" at 0x[0-9a-f]+", "", repr(leaf)) if None in named else ".".join(map(str, named))


def pack_numbers(arrays: Any) -> bytes:
    """What all arrays in a tree hold, one after the other; of objects nothing."""
    return b"".join(array.tobytes() for array in map(_find_numbers, jax.tree.leaves(arrays)) if array.dtype != object)


def unpack_numbers(packed: bytes, like: Any) -> Any:
    """Arrays as in a tree, where they are there, with the numbers of another tree that was packed.

    Arrays of the host that can be written hold them afterwards.

    Raises:
      ValueError: These are more bytes, or fewer.
    """
    leaves, tree = jax.tree.flatten(like)
    numbers = [_find_numbers(leaf) for leaf in leaves]
    sizes = [0 if array.dtype == object else array.nbytes for array in numbers]
    if sum(sizes) != len(packed):
        raise ValueError(f"its inputs have {sum(sizes)} bytes, and today's {len(packed)}")
    taken, begin = [], 0
    for leaf, array, size in zip(leaves, numbers, sizes, strict=True):
        other = packed[begin : begin + size]
        begin += size
        is_same = array.dtype == object or array.tobytes() == other
        taken.append(leaf if is_same else _place(numpy.ndarray(array.shape, array.dtype, other), leaf))
    return jax.block_until_ready(jax.tree.unflatten(tree, taken))


def _place(array: numpy.ndarray[Any, Any], like: Any) -> Any:
    """Numbers where another array is, and of its kind: of JAX's in a buffer of their own, which can be donated."""
    if isinstance(like, numpy.ndarray) and like.flags.writeable:
        like[...] = array  # where in memory they begin, and in which order, may be what is measured
        return like
    if not isinstance(like, jax.Array):
        return array.copy() if isinstance(like, numpy.ndarray) else type(like)(array.item())
    if _is_key(like):
        key = jax.random.wrap_key_data(jax.numpy.asarray(array), impl=jax.random.key_impl(like))
        return jax.device_put(key, like.sharding) if is_committed(like) else key
    if like.aval.weak_type:
        # No array of NumPy is weakly typed, but a program can say that what it gives is.
        return jax.jit(jax.numpy.copy).lower(like).compile()(array)
    placed = jax.device_put(array, like.sharding) if is_committed(like) else jax.numpy.asarray(array)
    return jax.numpy.copy(placed)


def _find_numbers(leaf: Any) -> numpy.ndarray[Any, Any]:
    """What a leaf holds, a random key as well."""
    return numpy.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def size_bytes(arrays: Any) -> int:
    """What all arrays, or their shapes, in a tree hold; of an array, on all devices together that this process sees.

    An array that is there several times, as in each tuple of a stream, is held once.
    """
    return sum(map(_leaf_bytes, list_distinct(arrays)))


def list_distinct(arrays: Any) -> list[Any]:
    """The leaves of a tree, each array once. A shape is no array: one may stand for several."""
    leaves = jax.tree.leaves(arrays)
    shapes = [leaf for leaf in leaves if isinstance(leaf, jax.ShapeDtypeStruct)]
    return [*shapes, *{id(leaf): leaf for leaf in leaves if not isinstance(leaf, jax.ShapeDtypeStruct)}.values()]


def _leaf_bytes(leaf: Any) -> int:
    if isinstance(leaf, jax.Array) and len(leaf.sharding.device_set) > 1:
        return sum(shard.data.nbytes for shard in leaf.addressable_shards)
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return int(leaf.size * leaf.dtype.itemsize)
    # Other libraries count the bytes of their arrays too; numbers, and models of theirs, are not counted.
    return int(getattr(leaf, "nbytes", 0))


Path = tuple[Any, ...]
"""Where a leaf is: the keys of `jax.tree_util`, from the arguments down."""

MOST_TRIALS = 8
"""So many numbers are tried one by one, a trace each, for which of them must be concrete; of more all are static."""

CONCRETE_ERRORS = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerBoolConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.TracerArrayConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)
"""What JAX raises where a number that it traces must be known: in a branch, a shape or an axis."""

_WORDS = ("Tracer", "concrete", "static")
"""In messages of other errors for the same reason, such as that of a slice's IndexError and of a shape's TypeError."""


def is_array(leaf: Any) -> bool:
    """Whether JAX traces it as an array: its own, their shapes, and NumPy's of numbers."""
    if isinstance(leaf, numpy.ndarray | numpy.generic):
        return leaf.dtype.kind in "biufcV" and not leaf.dtype.hasobject and leaf.dtype.names is None
    return isinstance(leaf, (jax.Array, jax.ShapeDtypeStruct, *REFERENCES)) or hasattr(leaf, "__jax_array__")


def is_number(leaf: Any) -> bool:
    """Whether it is one of Python's own numbers, which JAX traces weakly typed."""
    return isinstance(leaf, bool | int | float | complex) and not isinstance(leaf, numpy.generic)


def is_traced(leaf: Any) -> bool:
    """Whether `jax.jit` traces a leaf."""
    return is_array(leaf) or is_number(leaf)


@dataclass(frozen=True)
class Arguments:
    """A call's arguments, those that are traced apart from those that are static.

    Args:
      traced: The positional and keyword arguments as a pair, None where a leaf is static.
      static: Path -> leaf.
    """

    traced: tuple[tuple[Any, ...], dict[str, Any]]
    static: dict[Path, Any]

    def take_back(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments of this form, such as those of a trace, with the static leaves where they belong."""
        if not self.static:
            return args, kwargs
        whole: tuple[tuple[Any, ...], dict[str, Any]] = jax.tree_util.tree_map_with_path(
            lambda path, leaf: self.static.get(path) if leaf is None else leaf,
            (args, kwargs),
            is_leaf=lambda leaf: leaf is None,
        )
        return whole

    def close_over(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function of what is traced alone."""
        if not self.static:
            return function

        @wraps(function)
        def of_traced(*args: Any, **kwargs: Any) -> Any:
            args, kwargs = self.take_back(args, kwargs)
            return function(*args, **kwargs)

        return of_traced


def split(args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, fixed: Collection[Path] = ()) -> Arguments:
    """Takes static leaves out of arguments.

    Args:
      fixed: Paths of numbers that are static as well.
    """
    static: dict[Path, Any] = {}

    def take_out(path: Path, leaf: Any) -> Any:
        if is_traced(leaf) and path not in fixed:
            return leaf
        if leaf is not None:
            static[path] = leaf
        return None

    whole = (args, kwargs or {})
    leaves, form = jax.tree_util.tree_flatten_with_path(whole, is_leaf=lambda leaf: leaf is None)
    kept = [take_out(path, leaf) for path, leaf in leaves]
    # The very objects where nothing is taken out: what a call is given is what the caller made.
    return Arguments(jax.tree.unflatten(form, kept) if static else whole, static)


def refuse_hidden_arrays(arguments: Arguments, names: tuple[str, ...] = ()) -> None:
    """Raise RefusedError where a static leaf holds arrays: a program would have them as constants.

    Args:
      names: Of the positional arguments, as far as they are known.
    """
    for path, leaf in arguments.static.items():
        fields = vars(leaf) if hasattr(leaf, "__dict__") and not isinstance(leaf, type | ModuleType) else {}
        if not any(isinstance(item, jax.Array | numpy.ndarray) for item in jax.tree.leaves(fields)):
            continue
        kind = type(leaf).__name__
        is_data = hasattr(leaf, "__dataclass_fields__")
        line = f"jax.tree_util.register_dataclass({kind})" if is_data else "@jax.tree_util.register_pytree_node_class"
        raise RefusedError(
            f"{name_leaf(path, names)} is a {kind}, which is not a JAX pytree: jit would treat the arrays inside "
            f"as constants; write {line}"
        )


def needs_concrete(error: BaseException) -> bool:
    """Whether tracing failed since a value must be known."""
    if isinstance(error, CONCRETE_ERRORS):
        return True
    return isinstance(error, TypeError | ValueError | IndexError) and any(word in str(error) for word in _WORDS)


def find_fixed(
    trace: Callable[[Arguments], Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
) -> tuple[Path, ...]:
    """Paths of the numbers among the arguments that must be static, since tracing them fails; none where it does not.

    Args:
      trace: Traces the function for such arguments.
    Raises:
      Whatever tracing raises, where making numbers static does not help.
    """
    try:
        trace(split(args, kwargs))
    except Exception as error:
        numbers = list(_list_numbers(args, kwargs))
        if not numbers or not needs_concrete(error):
            raise
        try:
            trace(split(args, kwargs, numbers))
        except Exception:  # noqa: BLE001  what was raised first says more
            raise error from None
    else:
        return ()
    fixed = tuple(numbers)
    if len(numbers) > MOST_TRIALS:
        return fixed
    for path in numbers:
        fewer = tuple(other for other in fixed if other != path)
        try:
            trace(split(args, kwargs, fewer))
        except Exception as error:
            if not needs_concrete(error):
                raise
        else:
            fixed = fewer
    return fixed


def _list_numbers(args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Iterator[Path]:
    for path, leaf in jax.tree_util.tree_leaves_with_path((args, kwargs or {})):
        if is_number(leaf):
            yield path


def find_argument_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """Names of the positional arguments of a callable, as far as they are known."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):
        return ()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return tuple(item.name for item in parameters if item.kind in kinds)


def name_leaf(path: Path, names: tuple[str, ...] = ()) -> str:
    """A path as a person writes it: `batch['x'][0]`.

    Args:
      path: From a pair of positional and keyword arguments down.
      names: Of the positional arguments, as far as they are known.
    """
    kind, first, *rest = path
    if kind.idx == 0:
        name = names[first.idx] if first.idx < len(names) else f"argument {first.idx}"
    else:
        name = str(first.key)
    return name + jax.tree_util.keystr(tuple(rest))
