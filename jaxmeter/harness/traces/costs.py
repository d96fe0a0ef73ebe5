"""FLOPs and bytes of each operation of a program, counted from its HLO by the rules of XLA's own analysis.

XLA's totals leave out how often a loop runs, and what a library computes. Here an operation has the cost of one
execution; the capture has the number of executions.
Source: https://github.com/openxla/xla/blob/main/xla/service/hlo_cost_analysis.cc
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from jaxmeter.harness.traces.hlo import Computation, HloError, Instruction, Module, list_called


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TRANSCENDENTAL = _words(
    "atan2 cbrt cosine erf exponential exponential-minus-one log log-plus-one logistic power rsqrt sine "
    "sqrt tan tanh acos acosh asin asinh atanh cosh sinh"
)
_ELEMENTWISE = _words(
    "abs add and bitcast-convert ceil clamp clz compare complex convert count-leading-zeros divide floor imag "
    "is-finite maximum minimum multiply negate not or popcnt real reduce-precision remainder round-nearest-afz "
    "round-nearest-even select shift-left shift-right-arithmetic shift-right-logical sign stochastic-convert subtract "
    "xor"
)
_FREE = _words(
    "parameter constant get-tuple-element tuple bitcast after-all add-dependency opt-barrier partition-id "
    "replica-id domain"
)
_NESTED = frozenset(("while", "call", "conditional", "async-start", "async-update", "async-done"))
"""What runs other operations, each of which is counted by itself."""

_BITS = {"pred": 8, "token": 0, "opaque": 0, "tuple": 0, "bf16": 16, "c64": 64, "c128": 128}
_ARRAY = re.compile(r"([a-z][a-z0-9]*)\[([0-9,<=]*)\]")
_DIMS = re.compile(r"(\w+_dims)=\{([0-9,]*)\}")
_WINDOW = re.compile(r"window=\{([^}]*)\}")
_LABELS = re.compile(r"dim_labels=(\w+)_(\w+)->(\w+)")
_BATCHES = re.compile(r"batch_group_count=(\d+)")
_FFT_LENGTH = re.compile(r"fft_length=\{([0-9,]*)\}")
_FLOPS_OF_COMPLEX_FMA = 8
_TARGET = re.compile(r'custom_call_target="([^"]*)"')
_CONFIGURATION = re.compile(r"backend_config=(\{.*\})\s*(?:,|$)", re.DOTALL)

MOST_PLACES = 100_000
"""Of a convolution's window and of its result the smaller: of more, those that lie on padding count, too."""

_PRODUCTS = ("__cublas$", "__triton_gemm")
_CONVOLUTIONS = "__cudnn$conv"


@dataclass(frozen=True)
class Cost:
    """What one execution does.

    Args:
      flops: Floating-point operations, transcendental functions not among them; None where nobody can say.
      transcendentals: Calls of transcendental functions, element by element.
      bytes: Read and written, each operand and each result once; None where nobody can say.
    """

    flops: float | None = 0.0
    transcendentals: float | None = 0.0
    bytes: float | None = 0.0


UNKNOWN = Cost(None, None, None)


def count_costs(module: Module) -> dict[str, Cost]:
    """Return the cost of one execution of each instruction that runs by itself, by its name."""
    counter = _Counter(module)
    inside_fusions = {
        name
        for computation in module.computations
        for instruction in computation.instructions
        if instruction.opcode not in _NESTED
        for name in list_called(instruction)
    }
    costs: dict[str, Cost] = {}
    for computation in module.computations:
        if computation.name not in inside_fusions:
            for instruction in computation.instructions:
                costs[instruction.name] = counter.count(instruction, computation)
    return costs


def count_elements(shape: str) -> int:
    """Return the elements of all arrays of a shape."""
    return sum(math.prod(dimensions) for _, dimensions in _arrays(shape))


def count_bytes(shape: str) -> float:
    """Return the bytes of all arrays of a shape."""
    return sum(math.prod(dimensions) * _bits(kind) / 8 for kind, dimensions in _arrays(shape))


def _arrays(shape: str) -> Iterator[tuple[str, list[int]]]:
    for kind, dimensions in _ARRAY.findall(shape):
        yield kind, [int(size) for size in re.findall(r"\d+", dimensions)]


def _bits(kind: str) -> int:
    digits = re.match(r"[a-z]+(\d+)", kind)
    return _BITS[kind] if kind in _BITS else int(digits[1]) if digits else 8


class _Counter:
    def __init__(self, module: Module) -> None:
        self.module = module
        self._flops: dict[str, tuple[float | None, float]] = {}

    def count(self, instruction: Instruction, within: Computation) -> Cost:
        opcode = instruction.opcode
        if opcode in _FREE or opcode in _NESTED:
            return Cost()
        if opcode.endswith(("-start", "-done", "-update")):
            return UNKNOWN  # half of a transfer or of a collective
        shapes = {other.name: other.shape for other in within.instructions}
        flops, transcendentals = self.count_flops(instruction, shapes)
        return Cost(flops, transcendentals, self.count_traffic(instruction, shapes))

    def count_flops(self, instruction: Instruction, shapes: Mapping[str, str]) -> tuple[float | None, float]:
        """FLOPs and transcendentals of one execution."""
        opcode = instruction.opcode
        elements = count_elements(instruction.shape)
        operands = [shapes.get(name, "") for name in instruction.operands]
        if opcode in _ELEMENTWISE:
            return elements, 0.0
        if opcode in _TRANSCENDENTAL:
            return 0.0, elements
        if opcode == "dot" and operands:
            return _count_dot(instruction, operands), 0.0
        if opcode == "convolution" and len(operands) == 2:
            return _count_convolution(instruction, operands, instruction.shape), 0.0
        if opcode == "custom-call":
            return _count_library_call(instruction, operands), 0.0
        if opcode == "fusion":
            return self._count_called(instruction)
        if opcode in (
            "reduce",
            "all-reduce",
            "reduce-scatter",
            "reduce-window",
            "map",
            "scatter",
        ):
            applied, transcendental = self._count_called(instruction)
            times = _count_applications(instruction, operands, elements)
            return None if applied is None else applied * times, transcendental * times
        if opcode == "sort" and operands:
            sorted_elements = count_elements(operands[0])
            return float(sorted_elements * max(0, sorted_elements - 1).bit_length()), 0.0
        if opcode == "select-and-scatter" and len(operands) > 1:
            return self._count_select_and_scatter(instruction, count_elements(operands[1]))
        if opcode == "fft" and operands:
            lengths = _FFT_LENGTH.search(instruction.attributes)
            sizes = [int(size) for size in lengths[1].split(",") if size] if lengths else [1]
            steps = math.prod(max(0, size.bit_length() - 1) for size in sizes)
            return float(_FLOPS_OF_COMPLEX_FMA * steps * count_elements(operands[0])), 0.0
        return 0.0, 0.0

    def _count_called(self, instruction: Instruction) -> tuple[float | None, float]:
        flops: float | None = 0.0
        transcendentals = 0.0
        for name in list_called(instruction):
            own, other = self._count_computation(name)
            flops = None if flops is None or own is None else flops + own
            transcendentals += other
        return flops, transcendentals

    def _count_select_and_scatter(self, instruction: Instruction, sources: int) -> tuple[float | None, float]:
        """Of each source element all of its window is compared, and one place is updated."""
        size = math.prod(int(part) for part in _read_window(instruction).get("size", ["1"]))
        flops: float | None = 0.0
        transcendentals = 0.0
        for name, times in zip(list_called(instruction), (sources * max(0, size - 1), sources), strict=False):
            own, other = self._count_computation(name)
            flops = None if flops is None or own is None else flops + own * times
            transcendentals += other * times
        return flops, transcendentals

    def _count_computation(self, name: str) -> tuple[float | None, float]:
        if name not in self._flops:
            self._flops[name] = None, 0.0  # of a program that calls itself, which none does
            computation = self.module.computation(name)
            shapes = {other.name: other.shape for other in computation.instructions}
            costly = [instruction for instruction in computation.instructions if instruction.opcode not in _FREE]
            parts = [self.count_flops(instruction, shapes) for instruction in costly]
            known = [flops for flops, _ in parts if flops is not None]
            self._flops[name] = sum(known) if len(known) == len(parts) else None, sum(other for _, other in parts)
        return self._flops[name]

    def count_traffic(self, instruction: Instruction, shapes: Mapping[str, str]) -> float | None:
        """Bytes that one execution reads and writes."""
        opcode = instruction.opcode
        operands = [shapes.get(name, "") for name in instruction.operands]
        written = count_bytes(instruction.shape)
        if opcode in ("dynamic-slice", "slice", "gather"):
            return 2 * written + sum(count_bytes(shape) for shape in operands[1:])
        if opcode == "dynamic-update-slice" and len(operands) > 1:
            return 2 * count_bytes(operands[1]) + sum(count_bytes(shape) for shape in operands[2:])
        if opcode == "scatter" and len(operands) == 3:
            return count_bytes(operands[1]) + 3 * count_bytes(operands[2])
        if opcode in ("broadcast", "iota"):
            return written + sum(map(count_bytes, operands))
        if opcode == "fusion":
            with suppress(HloError):
                return self._count_fusion_traffic(instruction)
        return written + sum(map(count_bytes, operands))

    def _count_fusion_traffic(self, instruction: Instruction) -> float:
        """Of a fusion its parameters, of which some are read in part, and its results, of which some are updates."""
        computation = next((self.module.computation(name) for name in list_called(instruction)), None)
        root = next((inner for inner in computation.instructions if inner.is_root), None) if computation else None
        if computation is None or root is None:
            raise HloError(f"fusion {instruction.name} computes nothing")
        shapes = {other.name: other.shape for other in computation.instructions}
        users: dict[str, list[Instruction]] = {}
        for inner in computation.instructions:
            for name in inner.operands if inner.opcode not in ("parameter", "constant") else ():
                users.setdefault(name, []).append(inner)
        by_name = {inner.name: inner for inner in computation.instructions}
        parameters = [inner for inner in computation.instructions if inner.opcode == "parameter"]
        traffic = sum(_count_read(parameter, users, shapes) for parameter in parameters)
        results = [by_name[name] for name in root.operands if name in by_name] if root.opcode == "tuple" else [root]
        return traffic + sum(_count_written(result, by_name, shapes) for result in results)


def _count_read(parameter: Instruction, users: Mapping[str, list[Instruction]], shapes: Mapping[str, str]) -> float:
    """Bytes that a fusion reads of one parameter: a slice of it where all that uses it takes slices."""
    whole = count_bytes(parameter.shape)
    read = 0.0
    waiting = [parameter.name]
    while waiting:
        name = waiting.pop()
        for user in users.get(name, []):
            if user.opcode in ("bitcast", "reshape"):
                waiting.append(user.name)
            elif user.opcode in ("dynamic-slice", "slice", "gather") and user.operands[0] == name:
                read += count_bytes(user.shape)
            elif user.opcode == "dynamic-update-slice" and user.operands[0] == name:
                read += 0.0  # what is not updated stays where it is
            else:
                return whole
    return min(read, whole)


def _count_written(result: Instruction, by_name: Mapping[str, Instruction], shapes: Mapping[str, str]) -> float:
    while result.opcode in ("bitcast", "reshape", "copy", "convert") and result.operands[0] in by_name:
        inner = by_name[result.operands[0]]
        if inner.opcode not in ("bitcast", "reshape", "dynamic-update-slice"):
            break
        result = inner
    if result.opcode == "dynamic-update-slice" and len(result.operands) > 1:
        return count_bytes(shapes.get(result.operands[1], ""))
    return count_bytes(result.shape)


def _count_applications(instruction: Instruction, operands: list[str], elements: int) -> float:
    """How often an instruction applies the computation that it names."""
    match instruction.opcode:
        case "reduce":
            inputs = len(operands) // 2 or 1
            return max(0, (sum(map(count_elements, operands[:inputs])) - elements) / inputs)
        case "reduce-window":
            size = math.prod(int(part) for part in _read_window(instruction).get("size", ["1"]))
            results = sum(1 for _ in _arrays(instruction.shape)) or 1  # of equal shape, each of one application
            return elements / results * max(0, size - 1)
        case "scatter":
            return count_elements(operands[2]) if len(operands) > 2 else 0
        case _:
            return elements


def _count_dot(instruction: Instruction, operands: list[str]) -> float | None:
    sizes = next((dimensions for _, dimensions in _arrays(operands[0])), [])
    contracted = dict(_DIMS.findall(instruction.attributes)).get("lhs_contracting_dims", "")
    places = [int(place) for place in contracted.split(",") if place]
    if any(place >= len(sizes) for place in places):
        return None
    return 2.0 * count_elements(instruction.shape) * math.prod(sizes[place] for place in places)


def _count_convolution(instruction: Instruction, operands: list[str], result: str) -> float | None:
    """Return for all output elements the kernel positions on the input, times input features, times two."""
    labels = _LABELS.search(instruction.attributes)
    arrays = [next((dimensions for _, dimensions in _arrays(shape)), []) for shape in (*operands[:2], result)]
    if labels is None or [len(label) for label in labels.groups()] != [len(array) for array in arrays]:
        return None
    sizes = [dict(zip(label, array, strict=True)) for label, array in zip(labels.groups(), arrays, strict=True)]
    data, kernel, output = sizes
    window = _read_window(instruction)
    spatial = sorted(name for name in kernel if name.isdigit())
    positions = math.prod(
        _count_positions(data[name], output[name], {key: values[place] for key, values in window.items()}, kernel[name])
        for place, name in enumerate(spatial)
    )
    batches = _BATCHES.search(instruction.attributes)
    flops: float = 2.0 * positions * kernel["i"] * output["f"] * data["b"] / (int(batches[1]) if batches else 1)
    return flops


def _count_positions(data: int, output: int, window: Mapping[str, str], kernel: int) -> int:
    """Return the number of pairs of an output and a kernel position whose input is neither padding nor a hole."""
    stride, spread, holes = (int(window.get(name, 1)) for name in ("stride", "rhs_dilate", "lhs_dilate"))
    before = int(window.get("pad", "0_0").split("_")[0])
    if min(stride, spread, holes) < 1:
        raise ValueError("a window's strides and dilations are 1 or more")
    (fewer, apart), (more, step) = sorted(((output, stride), (kernel, spread)))
    if fewer > MOST_PLACES:
        return kernel * output
    return sum(_count_hits(place * apart - before, step, more, data, holes) for place in range(fewer))


def _count_hits(first: int, step: int, places: int, data: int, holes: int) -> int:
    """Return how many of `places` positions in equal steps are on an input element; these are `holes` apart."""
    low = max(0, -(first // step))
    high = min(places - 1, (data * holes - 1 - first) // step)
    if holes == 1:
        return max(0, high - low + 1)
    common = math.gcd(step, holes)
    if first % common:
        return 0
    period = holes // common
    at = -first // common * pow(step // common, -1, period) % period  # where the first element is hit
    return max(0, (high - at) // period - (low - 1 - at) // period)


def _read_window(instruction: Instruction) -> dict[str, list[str]]:
    window = _WINDOW.search(instruction.attributes)
    pairs = [part.split("=", 1) for part in window[1].split()] if window else []
    return {pair[0]: pair[1].split("x") for pair in pairs if len(pair) == 2}


def _count_library_call(instruction: Instruction, operands: list[str]) -> float | None:
    """FLOPs of a product or convolution that XLA hands to a library; None of any other call."""
    target = _TARGET.search(instruction.attributes)
    result = next((match[0] for match in _ARRAY.finditer(instruction.shape)), "")
    if target is None or len(operands) < 2:
        return None
    if target[1].startswith(_PRODUCTS):
        return _count_library_product(instruction, operands, result)
    if target[1].startswith(_CONVOLUTIONS):
        parts = {"Forward": (operands, result), "BackwardInput": ([result, operands[1]], operands[0])}
        parts["BackwardFilter"] = ([operands[0], result], operands[1])
        kind = next((kind for kind in parts if kind in target[1]), "Forward")
        return _count_convolution(instruction, *parts[kind])
    return None


def _count_library_product(instruction: Instruction, operands: list[str], result: str) -> float | None:
    configuration = _CONFIGURATION.search(instruction.attributes)
    if configuration is None:
        return None
    try:
        parsed = json.loads(configuration[1])
        numbers = parsed.get("gemm_backend_config", parsed)["dot_dimension_numbers"]
        places = [int(place) for place in numbers["lhs_contracting_dimensions"]]
        sizes = next(dimensions for _, dimensions in _arrays(operands[0]))
        contracted: int = math.prod(sizes[place] for place in places)
        return 2.0 * count_elements(result) * contracted
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, StopIteration, RecursionError):
        return None
