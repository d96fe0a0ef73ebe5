"""One outcome from those of several processes that looked at the same variant in the same way. No jax."""

from __future__ import annotations

from harness.record import Number, Outcome, Status


def joined(first: Outcome | None, second: Outcome) -> Outcome:
    """Both: values one after the other, each note once, the worse status with its reason.

    What only one of them could do is done: unsupported beside ok is ok, and its reason a note.
    """
    if first is None:
        return second
    order = list(Status)
    worse = max((first, second), key=lambda outcome: order.index(outcome.status))
    reason, notes = worse.reason, (*first.notes, *second.notes)
    status = worse.status
    if {first.status, second.status} == {Status.OK, Status.UNSUPPORTED}:
        status, reason, notes = Status.OK, None, (*notes, *filter(None, [worse.reason]))
    values: dict[str, tuple[Number | None, ...]] = dict(first.values)
    for name, more in second.values.items():
        values[name] = (*values.get(name, ()), *more)
    return Outcome(
        status=status,
        reason=reason,
        stderr=worse.stderr,
        values=values,
        notes=tuple(dict.fromkeys(notes)),
        contended=first.contended or second.contended,
        fingerprints=tuple(dict.fromkeys((*first.fingerprints, *second.fingerprints))),
        buffers=first.buffers or second.buffers,
    )
