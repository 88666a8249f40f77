"""One voice at a time: computes the line of terms from the known openings (decision 0018).

A term is opened after a fragment of the term before. Where two open the same term, the one whose person ranks
higher in the deed counts, then the smaller device id. The line is a function of the deed, the openings and
the held fragments: their order of arrival, and repetitions, make no difference.

What a malicious person in the deed can do: open a term after an old fragment, which orphans everything said
since; and open a term again that a lower rank spoke in. Neither is hidden, since openings are signed, and
nothing is lost: orphans are kept and their authors say them again. What they cannot do: skip terms (so these
cannot be used up), go on from a fragment that nobody has (that waits for ever), speak in a term of another
person, or use one number twice unseen. A person who is not in a newer deed opens nothing more; their old
terms count where the deed names them, or the next term was built on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import Enum

from msgspec import Struct

from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, DeviceId, EventId
from linnet.core.reasons import Reason
from linnet.places.deed import Deed
from linnet.places.multicast.fragmentation import FIRST_TERM, Cut, Flag, Head

AHEAD = 256
"""The terms past the end of the line whose openings may wait."""
EACH = 4
"""The openings of one term kept for one device, those with the smallest ids: an honest device has one."""


class Spoken(Struct, frozen=True, gc=False):
    """A fragment that is held, to compare a cut with."""

    term: int
    fragment: int
    message: int
    device: DeviceId
    seq: int | None = None
    """The fragment's number in the chain of its device."""


Held = Callable[[EventId], Spoken | None]
"""Returns the fragment of an event; None if it is not held."""


class Opening(Struct, frozen=True, array_like=True, gc=False):
    """The fragment that opens a term."""

    term: int
    fragment: int
    message: int
    cut: Cut | None
    person: AuthorId
    device: DeviceId
    event: EventId
    seq: int | None = None
    """The fragment's number in the chain of its device: a device may have to open a term twice, after
    different fragments, and its fragments in the one are not of the other. None: not known, as before version
    0.2."""


class Segment(Struct, frozen=True, gc=False):
    """A term of the line: its fragments from its opening to its end, both included."""

    opening: Opening
    end: int | None
    """The last fragment; None: it is the last term, and goes on."""


class Base(Struct, frozen=True, gc=False):
    """Where the line begins for a newcomer who may not see the past, as given at the admission."""

    term: int
    fragment: int
    """The first fragment that the newcomer can see."""


class Shift(Struct, frozen=True, gc=False):
    """A change of the line: everything applied after this point has to be undone first."""

    fragment: int
    """The last fragment that stands; -1: none."""
    message: int
    """Messages that began later do not stand; 0: nothing stands."""
    anew: bool = False
    """Whether the first term that we knew has been replaced."""


class Where(Enum):
    """Where a fragment stands in relation to the line."""

    IN_LINE = "in line"
    ORPHANED = "orphaned"
    WAITING = "waiting"
    """Its term, or one before it, is not known yet."""


def opening_of(
    head: Head, person: AuthorId, device: DeviceId, event: EventId, seq: int | None = None
) -> Opening:
    """Return the opening that this fragment is; `RemoteError` if it is none that can count."""
    if not head.flags & Flag.OPENING:
        raise RemoteError(Reason.MALFORMED, "no opening of a term")
    if not head.is_first:
        raise RemoteError(Reason.MALFORMED, "a term that opens in the middle of a message")
    if head.cut is None:
        if (head.term, head.fragment, head.message) != (FIRST_TERM, 0, 1):
            raise RemoteError(Reason.MALFORMED, f"term {head.term} opens behind nothing")
    elif head.term != head.cut.term + 1 or head.term == FIRST_TERM:
        raise RemoteError(Reason.MALFORMED, f"term {head.term} opens behind term {head.cut.term}")
    elif head.message != head.cut.message + 1 or head.fragment != head.cut.fragment + 1:
        raise RemoteError(Reason.MALFORMED, "numbers that do not go on from the cut")
    return Opening(head.term, head.fragment, head.message, head.cut, person, device, event, seq)


class Terms:
    """The line of terms of one place."""

    def __init__(
        self, deed: Deed, held: Held, base: Base | None = None, former: Iterable[AuthorId] = ()
    ) -> None:
        """`former` are people in an earlier deed, so that their old terms may still count."""
        self._deed = deed
        self._held = held
        self._base = base
        self._former: dict[AuthorId, None] = dict.fromkeys(former)
        self._known: dict[int, dict[EventId, Opening]] = {}
        self._awaited: dict[EventId, int] = {}
        """Fragments that cuts name and that are not held, with the lowest term that opens after each."""
        self._line: list[Segment] = []

    @property
    def line(self) -> tuple[Segment, ...]:
        """The terms that count, the first one first."""
        return tuple(self._line)

    @property
    def voice(self) -> Opening | None:
        """The opening of the present voice; None if nobody has spoken yet."""
        return self._line[-1].opening if self._line else None

    @property
    def awaited(self) -> tuple[EventId, ...]:
        """The fragments to ask for, since openings name them."""
        return tuple(self._awaited)

    def awaits(self, event: EventId) -> bool:
        """Return whether an opening names this fragment, and it is not held."""
        return event in self._awaited

    @property
    def base(self) -> Base | None:
        """Where the line begins for us; None: at its first term."""
        return self._base

    @property
    def is_adrift(self) -> bool:
        """Whether the line was cut before our entry: then it goes on where we cannot see it."""
        end = self._line[0].end if self._line else None
        return self._base is not None and end is not None and end < self._base.fragment

    @property
    def sought(self) -> list[int]:
        """The numbers of the awaited fragments."""
        cuts = [each.cut for each in self.openings if each.cut is not None]
        return [cut.fragment for cut in cuts if cut.head in self._awaited]

    def knows(self, term: int, event: EventId) -> bool:
        """Return whether this opening is known, be it in the line or not."""
        return event in self._known.get(term, {})

    @property
    def openings(self) -> Iterator[Opening]:
        """All known openings, to be stored and offered again after a restart."""
        return (each for term in sorted(self._known) for each in self._known[term].values())

    def offer(self, opening: Opening) -> Shift | None:
        """Take a checked opening; return the change of the line. `RemoteError` if it cannot count."""
        if not self._deed.knew(opening.person) and opening.person not in self._former:
            raise RemoteError(Reason.NOT_A_PUBLISHER, "the deed does not let this person speak")
        if self._base is not None and opening.term < self._base.term:
            raise RemoteError(Reason.STALE, f"term {opening.term} is before term {self._base.term}")
        last = self._line[-1].opening.term if self._line else max(0, self._base.term if self._base else 0)
        if opening.term > last + AHEAD:
            raise RemoteError(Reason.MISSING_DEPENDENCY, f"term {opening.term}, and {last} is the last known")
        row = self._known.setdefault(opening.term, {})
        row[opening.event] = opening
        mine = sorted(event for event, each in row.items() if each.device == opening.device)
        for surplus in mine[EACH:]:
            del row[surplus]
        return self._settle(opening.term)

    def equivocated(self, opening: Opening) -> bool:
        """Return whether the device opened the same term twice after the same fragment: a fault to be
        reported, whichever of them counts. After another fragment it may have to, if the term before was lost
        to another device."""
        row = self._known.get(opening.term, {})
        return any(
            (each.device, each.cut) == (opening.device, opening.cut) and each.event != opening.event
            for each in row.values()
        )

    def arrived(self, event: EventId) -> Shift | None:
        """Note that a fragment is held now; return the change of the line if an opening waited for it."""
        term = self._awaited.get(event)
        return None if term is None else self._settle(term)

    def renew(self, deed: Deed) -> Shift | None:
        """Take a newer deed; people not in it open nothing from now on. Return the change of the line."""
        if deed.version <= self._deed.version:
            return None
        for person in (self._deed.host, *self._deed.cohosts):
            self._former[person] = None
        self._deed = deed
        return self._settle(FIRST_TERM)

    def where(self, head: Head, device: DeviceId, seq: int | None = None) -> Where:
        """Return where a fragment of this device stands now; `seq`: its number in the chain of its device."""
        index = head.term - self._first_term
        if index < 0:
            return Where.ORPHANED  # before our time
        if index >= len(self._line):
            return Where.WAITING
        segment = self._line[index]
        if segment.opening.device != device or head.fragment < segment.opening.fragment:
            return Where.ORPHANED
        if not self._is_of(segment.opening, seq):
            return Where.ORPHANED
        past = None if segment.end is not None else self._deed.past_term(segment.opening.event)
        end = segment.end if past is None else past.fragment
        return Where.IN_LINE if end is None or head.fragment <= end else Where.ORPHANED

    @property
    def _first_term(self) -> int:
        return FIRST_TERM if self._base is None else max(FIRST_TERM, self._base.term)

    def _rank(self, person: AuthorId) -> int:
        rank = self._deed.rank(person)
        return len(self._deed.cohosts) + 1 if rank is None else rank

    def _ordered(self, term: int) -> list[Opening]:
        row = self._known.get(term, {}).values()
        return sorted(row, key=lambda each: (self._rank(each.person), each.device, each.event))

    def _settle(self, term: int) -> Shift | None:
        """Compute the line anew from this term on."""
        before = list(self._line)
        # an opening of a former speaker may count by what is built on it: begin below its whole run
        start = self._first_term if self._former else max(term, self._first_term)
        del self._line[start - self._first_term :]
        if self._line:
            self._line[-1] = Segment(self._line[-1].opening, None)
        vouched = self._vouched() if self._former else {}
        for event in [event for event, waiting in self._awaited.items() if waiting >= start]:
            del self._awaited[event]
        self._await(start)
        while (found := self._next(vouched)) is not None:
            if self._line and found.cut is not None:
                self._line[-1] = Segment(self._line[-1].opening, found.cut.fragment)
            self._line.append(Segment(found, None))
        return self._shift(before)

    def _next(self, vouched: dict[EventId, None]) -> Opening | None:
        term = self._first_term + len(self._line)
        ordered = self._ordered(term)
        if not self._line and self._base is not None:
            # Behind what we cannot see, the last opening of a device that opened the term twice is taken as
            # right.
            ordered.sort(key=lambda each: (self._rank(each.person), each.device, -(each.seq or 0)))
        for each in ordered:
            if self._counts(each, vouched) and self._follows_line(each):
                return each
        return None

    def _follows_line(self, opening: Opening) -> bool:
        if not self._line:
            return opening.cut is None or self._base is not None
        return self._follows(opening, self._line[-1].opening)

    def _follows(self, opening: Opening, before: Opening) -> bool:
        """Return whether the cut names a fragment that this term's voice said in it."""
        cut = opening.cut
        if cut is None or cut.term != before.term:
            return False
        base = self._base
        if base is not None and cut.term == base.term and cut.fragment < base.fragment:
            return True  # before what we can see: the opener is believed
        spoken = self._held(cut.head)
        return (
            spoken is not None
            and (spoken.term, spoken.fragment, spoken.device) == (cut.term, cut.fragment, before.device)
            and before.fragment <= cut.fragment
            and spoken.message <= cut.message
            and self._is_of(before, spoken.seq)
        )

    def _is_of(self, opening: Opening, seq: int | None) -> bool:
        """Return whether the device's fragment with this number of its chain belongs to this opening of the
        term, not to another one that it had to make before or later."""
        if seq is None or opening.seq is None:
            return True
        if seq < opening.seq:
            return False
        others = (each for each in self._known[opening.term].values() if each.device == opening.device)
        return not any(each.seq is not None and opening.seq < each.seq <= seq for each in others)

    def _vouched(self) -> dict[EventId, None]:
        """Return openings of former speakers that a counting term is built on, from the last term down."""
        good: dict[EventId, None] = {}
        for term in sorted(self._known, reverse=True):
            above = [each for each in self._known.get(term + 1, {}).values() if self._counts(each, good)]
            for each in self._known[term].values():
                if any(self._follows(later, each) for later in above):
                    good[each.event] = None
        return good

    def _counts(self, opening: Opening, vouched: dict[EventId, None]) -> bool:
        if self._deed.rank(opening.person) is not None or opening.event in vouched:
            return True
        return self._deed.past_term(opening.event) is not None

    def _await(self, start: int) -> None:
        for term in range(start, max(self._known, default=0) + 1):
            for each in self._known.get(term, {}).values():
                if each.cut is not None and self._held(each.cut.head) is None:
                    self._awaited.setdefault(each.cut.head, term)

    def _shift(self, before: list[Segment]) -> Shift | None:
        """Return the last point that both lines share, if they differ."""
        same = 0
        for old, new in zip(before, self._line, strict=False):
            if old.opening != new.opening:
                break
            same += 1
        if same == len(before) == len(self._line):
            return None
        if same == 0:
            return Shift(-1, 0, bool(before)) if before or self._line else None
        cuts = [rest[same].opening.cut for rest in (before, self._line) if len(rest) > same]
        points = [(cut.fragment, cut.message) for cut in cuts if cut is not None]
        return Shift(*min(points)) if points else None
