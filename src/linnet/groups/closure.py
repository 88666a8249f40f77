"""What of a group's history may be forgotten: so that it grows with its members, not with its age.

Removed members are *closed* when all others have seen a removal of each of them; as many as possible,
together. All others means not only the present members: one that is removed itself, and has not
seen it, still acts as if they were there.

Nobody addresses anything to a closed member any more, so its keys may go at once. What it did itself
before it learned of its removal may still be under way, though, and counts when it comes. How long to
wait for that is the caller's matter: of a member that is forgotten nothing can be taken any more.
"""

from __future__ import annotations

from collections.abc import Container

from linnet.groups.history import Addition, History, Removal, places
from linnet.groups.ids import MemberId


def closed(history: History) -> tuple[MemberId, ...]:
    """The removed members whose removal all others have seen, by id."""
    return history.ids(_closed(history, None))


def is_closed(history: History, mid: MemberId) -> bool:
    """Whether a member is closed; one that is unknown is not."""
    return bool(_closed(history, None) & history.bit(mid))


def compact(history: History, gone: Container[MemberId] | None = None) -> History:
    """The same without what cannot matter any more: no view of anybody who stays differs, now or later.

    Closed members go, unless `gone` is given and lacks them; and operations that all who stay have seen,
    which of a removal nobody has whom it covers. A group without members has ended, and is left as it is.
    Where there is a cover use `healing.compact`, which forgets the same there.
    """
    if not history.view(None):
        return history
    forgotten = _closed(history, gone)
    kept = history.everybody & ~forgotten
    additions = tuple(each for each in history.additions if each.members & kept and kept & ~each.seen)
    removals = tuple(each for each in history.removals if kept & ~each.seen)
    if forgotten:
        return _narrowed(history, kept, additions, removals)
    same = len(additions) == len(history.additions) and len(removals) == len(history.removals)
    return history if same else History(history.members, additions, removals)


def _narrowed(
    history: History, kept: int, additions: tuple[Addition, ...], removals: tuple[Removal, ...]
) -> History:
    stay = list(places(kept))

    def narrow(bits: int) -> int:
        return sum((bits >> place & 1) << at for at, place in enumerate(stay))

    # Whoever stays has seen the removal of a forgotten adder, and so whatever addition outlived it:
    # no removal will ask for the sender of an addition whose sender is forgotten.
    def sender(each: Addition) -> MemberId | None:
        return each.sender if each.sender is not None and history.bit(each.sender) & kept else None

    return History(
        tuple(history.members[place] for place in stay),
        tuple(Addition(each.op, sender(each), narrow(each.members), narrow(each.seen)) for each in additions),
        tuple(Removal(each.op, narrow(each.covered), narrow(each.seen)) for each in removals),
    )


def _closed(history: History, among: Container[MemberId] | None) -> int:
    removed = history.everybody & ~history.view(None)
    told = dict.fromkeys(places(removed), 0)
    for removal in history.removals:
        for place in places(removal.covered):
            told[place] |= removal.seen
    left = {place for place in told if among is None or history.members[place].id in among}
    while True:
        others = history.everybody & ~sum(1 << place for place in left)
        untold = {place for place in left if others & ~told[place]}
        if not untold:
            return history.everybody & ~others
        left -= untold
