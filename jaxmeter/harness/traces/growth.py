"""What differs between two captures: the operations that take more time, or less, in a step of one device."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum

import msgspec

from jaxmeter.harness.record.trace_summary import TracedOperation, TraceSummary
from jaxmeter.harness.traces.summary import describe_steps, find_busy_per_step

MOST_NAMED = 3
"""Programs of a capture that a sentence names."""


class Presence(StrEnum):
    """In which of two captures an operation is."""

    BOTH = "both"
    NEW = "new"
    GONE = "gone"
    UNNAMED = "unnamed"
    """One capture's summary names only its largest operations, and this operation is not among them."""


class Grown(msgspec.Struct, frozen=True, kw_only=True):
    """An operation in two captures. Times are shares of the busy time, per step and device, so all add up to it.

    Args:
      name, module: Of the later capture; of the earlier one where the operation is gone.
      earlier_name: In the earlier capture, where another one.
      operations: How many operations of that name and program there are, in the capture that has more.
      before_s, after_s: None where a summary does not name it.
    """

    name: str
    module: str
    opcode: str
    category: str
    source: str
    earlier_name: str = ""
    operations: int = 1
    before_s: float | None
    after_s: float | None
    presence: Presence

    @property
    def difference_s(self) -> float:
        """How much longer it takes in the later capture."""
        return (self.after_s or 0.0) - (self.before_s or 0.0)


class _Group(msgspec.Struct, frozen=True):
    """Operations of one key in one capture."""

    operations: tuple[TracedOperation, ...]
    time_s: float


_Groups = Mapping[tuple[str, str], _Group]


def find_grown(before: TraceSummary, after: TraceSummary) -> tuple[Grown, ...]:
    """Return every operation of two captures, by how much longer it takes in the later one.

    Operations are joined by program and name. Those without a partner are joined by opcode and source line, since
    another compilation numbers its operations differently.
    """
    earlier, later = _group(before, _name_key, before.operations), _group(after, _name_key, after.operations)
    grown = [_join(earlier[key], later[key]) for key in earlier if key in later]
    alone = (
        _group(before, _source_key, _flatten(earlier, later)),
        _group(after, _source_key, _flatten(later, earlier)),
    )
    matched = [key for key in alone[0] if key in alone[1] and all(key)]
    grown += [_join(alone[0][key], alone[1][key]) for key in matched]
    for group in _list_unmatched(before, alone[0], matched):
        presence = Presence.UNNAMED if after.others else Presence.GONE
        grown.append(_describe(group.operations, before_s=group.time_s, after_s=None, presence=presence))
    for group in _list_unmatched(after, alone[1], matched):
        presence = Presence.UNNAMED if before.others else Presence.NEW
        grown.append(_describe(group.operations, before_s=None, after_s=group.time_s, presence=presence))
    return tuple(sorted(grown, key=lambda operation: (-operation.difference_s, operation.module, operation.name)))


def list_unlike(before: TraceSummary, after: TraceSummary) -> tuple[str, ...]:
    """Return in what two captures are so unlike that a difference of their operations' times may have other reasons."""
    pairs = {
        "platform": [summary.platform for summary in (before, after)],
        "device": [summary.device_kind for summary in (before, after)],
        "number of devices": [str(len(summary.devices)) for summary in (before, after)],
        "steps": [describe_steps(msgspec.structs.replace(summary, step_name="")) for summary in (before, after)],
    }
    unlike = [f"{name}: {a or 'unknown'} in A, {b or 'unknown'} in B" for name, (a, b) in pairs.items() if a != b]
    modules = [{operation.module for operation in summary.operations} - {""} for summary in (before, after)]
    if all(modules) and not modules[0] & modules[1]:
        a, b = (", ".join(sorted(names)[:MOST_NAMED]) for names in modules)
        unlike.append(f"programs: {a} in A, {b} in B")
    return tuple(unlike)


def _name_key(operation: TracedOperation) -> tuple[str, str]:
    return operation.module, operation.name


def _source_key(operation: TracedOperation) -> tuple[str, str]:
    return operation.opcode, operation.source


def _group(
    summary: TraceSummary,
    key: Callable[[TracedOperation], tuple[str, str]],
    operations: Sequence[TracedOperation],
) -> _Groups:
    busy_s = find_busy_per_step(summary) or 0.0
    collected: dict[tuple[str, str], list[TracedOperation]] = defaultdict(list)
    for operation in operations:
        collected[key(operation)].append(operation)
    return {key: _Group(tuple(own), busy_s * sum(member.share for member in own)) for key, own in collected.items()}


def _flatten(groups: _Groups, others: _Groups) -> list[TracedOperation]:
    """Operations of the groups whose key the other capture lacks."""
    return [operation for key, group in groups.items() if key not in others for operation in group.operations]


def _list_unmatched(summary: TraceSummary, groups: _Groups, matched: Sequence[tuple[str, str]]) -> Iterator[_Group]:
    """Operations without a partner, by program and name again."""
    rest = [operation for key, group in groups.items() if key not in matched for operation in group.operations]
    yield from _group(summary, _name_key, rest).values()


def _join(before: _Group, after: _Group) -> Grown:
    earlier, later = before.operations[0], after.operations[0]
    return _describe(
        after.operations,
        before_s=before.time_s,
        after_s=after.time_s,
        presence=Presence.BOTH,
        earlier_name="" if (earlier.module, earlier.name) == (later.module, later.name) else earlier.name,
        count=max(len(before.operations), len(after.operations)),
    )


def _describe(
    operations: Sequence[TracedOperation],
    *,
    before_s: float | None,
    after_s: float | None,
    presence: Presence,
    earlier_name: str = "",
    count: int | None = None,
) -> Grown:
    first = operations[0]
    return Grown(
        name=first.name,
        module=first.module,
        opcode=first.opcode,
        category=first.category,
        source=first.source,
        earlier_name=earlier_name,
        operations=count or len(operations),
        before_s=before_s,
        after_s=after_s,
        presence=presence,
    )
