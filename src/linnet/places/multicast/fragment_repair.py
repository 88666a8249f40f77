"""Repairs gaps: missing fragments are noticed by their numbers, asked for one by one, and sent to others.

Toth 2013, section 3.8. A gap may close by itself, by another way, so a question waits a little, and is
dropped when the fragment comes. Members are asked in turn. A member that says that we may not see a fragment
is not asked for it again; when all say so, and more than one where there is more than one way up, the
fragment is closed to us and no longer missing. A range of missing numbers costs the same whether it holds one
number or 10¹²: numbers come from other nodes.

Every answer has its own membership test, without the memory that relaying has. If a test cannot be decided
here, that is our fault, not the asker's: it is told to ask another member, never that it may not.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from linnet.core.errors import RemoteError, StoreError
from linnet.core.ids import AuthorId, PeerId, TopicId
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.event.event import Unverified
from linnet.identity.cards import Card
from linnet.machine.outbox import Outbox
from linnet.places.channel.membership import Verdict
from linnet.places.config import PlacesConfig
from linnet.places.messages import Code, Replay, Replayed
from linnet.places.multicast.fragmentation import Head
from linnet.places.multicast.tree import MembershipTest, is_farewell
from linnet.trace.records import Kind, Record

RANGES = 16_384
"""The most gaps at once: a voice with so many scattered numbers is not honest."""
PATIENCE = 16
"""The number of `replay_timeout`s that an answer may take from a member that brings others meanwhile."""
SURE = 3
"""The members that must say that a fragment is not for us, if the other members do not have it."""
LONGEST_PAUSE = 3600.0
"""The longest pause in seconds until fragments that nobody had are asked for again."""
WANTED = 4096
"""The most pieces to be asked for by their message."""

Wish = tuple[int, int]
"""A piece to ask for: a message and an offset in it."""
ASKERS = 4096
"""The most members whose rate is remembered; the one unheard of for longest is forgotten."""
BURST_SECONDS = 0.5
"""Seconds of the rate that may be used up at once."""


class Gap(NamedTuple):
    """A range of missing numbers, both ends included."""

    first: int
    last: int
    since: float


class Gaps:
    """Disjoint ranges of missing numbers, lowest first."""

    def __init__(self) -> None:
        self._gaps: list[Gap] = []

    def __len__(self) -> int:
        return len(self._gaps)

    def __iter__(self) -> Iterator[Gap]:
        return iter(self._gaps)

    def __contains__(self, number: int) -> bool:
        return self._index(number) is not None

    @property
    def count(self) -> int:
        """The count of numbers in all ranges."""
        return sum(gap.last - gap.first + 1 for gap in self._gaps)

    def open(self, first: int, last: int, since: float) -> None:
        """Add a range; numbers that are missing already stay as they are."""
        at = first
        low = bisect_left(self._gaps, first, key=lambda gap: gap.last)
        high = bisect_right(self._gaps, last, key=lambda gap: gap.first)
        merged: list[Gap] = []
        for gap in self._gaps[low:high]:
            if gap.first > at:
                merged.append(Gap(at, gap.first - 1, since))
            merged.append(gap)
            at = gap.last + 1
        if at <= last:
            merged.append(Gap(at, last, since))
        self._gaps[low:high] = merged

    def fill(self, number: int) -> bool:
        """Remove a number; return whether it was missing."""
        index = self._index(number)
        if index is None:
            return False
        first, last, since = self._gaps[index]
        rest = [Gap(first, number - 1, since), Gap(number + 1, last, since)]
        self._gaps[index : index + 1] = [gap for gap in rest if gap.first <= gap.last]
        return True

    def splits(self, number: int) -> bool:
        """Return whether removing this number would split a range in two."""
        index = self._index(number)
        return index is not None and self._gaps[index].first < number < self._gaps[index].last

    def cut(self, number: int) -> None:
        """Forget this number and all above it."""
        kept = [gap for gap in self._gaps if gap.first < number]
        self._gaps = [Gap(gap.first, min(gap.last, number - 1), gap.since) for gap in kept]

    def begin(self, number: int) -> None:
        """Forget all numbers below this one."""
        kept = [gap for gap in self._gaps if gap.last >= number]
        self._gaps = [Gap(max(gap.first, number), gap.last, gap.since) for gap in kept]

    def put_back(self, seconds: float) -> None:
        """Shift the stored times by the seconds that the clock went back, so that nothing is due later."""
        self._gaps = [Gap(gap.first, gap.last, gap.since - seconds) for gap in self._gaps]

    def clear(self) -> None:
        """Forget all ranges."""
        self._gaps.clear()

    def _index(self, number: int) -> int | None:
        index = bisect_left(self._gaps, number, key=lambda gap: gap.last)
        return index if index < len(self._gaps) and self._gaps[index].first <= number else None


class Question(NamedTuple):
    """A message that asks a peer for something."""

    peer: PeerId
    message: Message


class _Asking:
    __slots__ = ("asked", "busy_until", "deadline", "denied", "lacking", "peer", "request", "tries", "what")

    def __init__(self, what: int | Wish) -> None:
        self.what = what
        self.tries = 0
        self.asked: dict[PeerId, None] = {}
        """Peers asked in this round."""
        self.denied: dict[PeerId, None] = {}
        self.lacking: dict[PeerId, None] = {}
        """Peers that do not have it."""
        self.peer: PeerId | None = None
        """The peer being asked; None: the next one is to be chosen."""
        self.request = 0
        self.deadline = 0.0
        self.busy_until = 0.0
        """When to ask again peers that could not answer just now."""


class FragmentRepair:
    """The missing fragments of a place, and the questions for them."""

    def __init__(
        self,
        place: TopicId,
        config: PlacesConfig,
        out: Outbox,
        upto: int = 0,
        gaps: Iterable[tuple[int, int]] = (),
    ) -> None:
        """Count numbers below `upto` as seen, except the gaps, which were missing when we stopped."""
        self._place = place
        self._config = config
        self._out = out
        self._next = upto
        """The number after the highest that was seen."""
        self._gaps = Gaps()
        for first, last in gaps:
            self._gaps.open(first, last, 0.0)
        self._parked = Gaps()
        """Numbers asked for in vain, left until another member connects or a keep-alive comes."""
        self._pause = self._again_at = 0.0
        """How long parked numbers are left alone, and until when."""
        self._closed = Gaps()
        self._wanted: dict[Wish, None] = {}
        self._vain: dict[Wish, None] = {}
        """Pieces asked for in vain, left like parked numbers."""
        self._sought: dict[int, None] = {}
        """Numbers to ask for though another fragment with that number may be here already."""
        self._asking: dict[int | Wish, _Asking] = {}
        self._requests: dict[int, _Asking] = {}
        self._request = 0
        self._members: dict[PeerId, None] = {}
        self._brought: dict[PeerId, float] = {}
        """When each member last brought something that it was asked for."""

    @property
    def count(self) -> int:
        """The count of missing fragments, by their numbers."""
        return self._gaps.count + self._parked.count

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to ask for, and no fragment was found to be closed."""
        return not (self._asking or self._wanted or self._sought or self._gaps or self._closed)

    @property
    def is_wishing(self) -> bool:
        """Whether pieces are asked for by their messages, or were in vain."""
        return bool(self._wanted or self._vain)

    @property
    def is_stuck(self) -> bool:
        """Whether fragments were asked for in vain: the connected members do not have them."""
        return bool(len(self._parked))

    @property
    def closed(self) -> list[tuple[int, int]]:
        """The ranges of fragments that are not for us, as all members say."""
        return [(gap.first, gap.last) for gap in self._closed]

    def connect(self, peer: PeerId, now: float) -> None:
        """Add a member to ask, also for fragments that nobody else had."""
        if peer not in self._members:
            self._members[peer] = None
            self.revive(now)

    def disconnect(self, peer: PeerId) -> None:
        """Remove a member; the questions that it was asked go to the next."""
        self._members.pop(peer, None)
        self._brought.pop(peer, None)
        for asking in [each for each in self._requests.values() if each.peer == peer]:
            self._withdraw(asking)

    def start(self, upto: int) -> None:
        """Stop asking for numbers below this one: we came in later, and they are not for us."""
        self._next = max(self._next, upto)
        for gaps in (self._gaps, self._parked, self._closed):
            gaps.begin(upto)
        for number in [number for number in self._sought if number < upto]:
            del self._sought[number]
        for what in [what for what in self._asking if isinstance(what, int) and what < upto]:
            self._drop(what)

    def revive(self, now: float) -> None:
        """Ask again for parked numbers and pieces."""
        for gap in self._parked:
            self._gaps.open(gap.first, gap.last, now)
        self._parked.clear()
        vain, self._vain = self._vain, {}
        for message, offset in vain:
            self.want(message, offset)

    def reopen(self, now: float) -> None:
        """Ask again for closed numbers, which may be open by now: our membership changed."""
        for gap in self._closed:
            self._gaps.open(gap.first, gap.last, now)
        self._closed.clear()

    def note_number(self, number: int, now: float) -> None:
        """Note that there is a fragment of this number: it and those below it are missing until they come."""
        if number < self._next:
            return
        if len(self._gaps) >= RANGES:
            raise RemoteError(Reason.TOO_MANY, f"{RANGES} gaps in the numbers of one place")
        self._gaps.open(self._next, number, now)
        self._next = number + 1

    def note_unverified(self, number: int, now: float) -> None:
        """Note that a peer claims, unsigned, that there is a fragment of this number. Only this one is asked
        for; only if it comes are the numbers below it known to be missing."""
        if number >= self._next and len(self._gaps) < RANGES:
            self._gaps.open(number, number, now)

    def handle_arrival(self, head: Head, now: float) -> None:
        """Stop asking for a fragment that arrived and was checked."""
        if head.fragment == self._next and not (self._gaps and head.fragment in self._gaps):  # most often
            self._next += 1
            self._alive(now)
        else:
            self.note_number(head.fragment, now)
            if len(self._gaps) >= RANGES and self._gaps.splits(head.fragment):
                raise RemoteError(Reason.TOO_MANY, f"{RANGES} gaps in the numbers of one place")
            if self._parked.fill(head.fragment):
                self._pause = 0.0
            self._gaps.fill(head.fragment)
            self._closed.fill(head.fragment)
        wish = (head.message, head.offset)
        self._wanted.pop(wish, None)
        self._vain.pop(wish, None)
        self._sought.pop(head.fragment, None)
        for what in (head.fragment, wish):
            asking = self._asking.get(what)
            if asking is not None:
                if asking.peer is not None:
                    self._brought[asking.peer] = now
                self._drop(what)

    def want(self, message: int, offset: int = 0) -> bool:
        """Ask for this piece before all others: state depends on it. False: too many are wanted already."""
        wish = (message, offset)
        if wish in self._wanted or wish in self._asking:
            return True
        if len(self._wanted) >= WANTED:
            return False
        self._vain.pop(wish, None)
        self._wanted[wish] = None
        return True

    def seek(self, number: int) -> None:
        """Ask for the fragment that others hold under this number: a term is opened after it."""
        if len(self._sought) < WANTED:
            self._sought[number] = None

    def handle_found(self, number: int) -> None:
        """Stop seeking a fragment that is stored here beside the line."""
        self._sought.pop(number, None)
        if number not in self._gaps:
            self._drop(number)

    def rewind(self, number: int, message: int) -> None:
        """Forget the numbers from this one on, and pieces after this message: the line was cut there."""
        self._next = min(self._next, number)
        for gaps in (self._gaps, self._parked, self._closed):
            gaps.cut(number)
        for wishes in (self._wanted, self._vain):
            for wish in [wish for wish in wishes if wish[0] > message]:
                del wishes[wish]
        for what in list(self._asking):
            if what >= number if isinstance(what, int) else what[0] > message:
                self._drop(what)

    def is_wanted(self, message: int, offset: int) -> bool:
        """Return whether this piece is still being asked for, and there is a member to ask."""
        wish = (message, offset)
        return bool(self._members) and (wish in self._wanted or wish in self._asking)

    def put_back(self, seconds: float) -> None:
        """Shift the stored times by the seconds that the clock went back, so that nothing is due later."""
        for gaps in (self._gaps, self._parked, self._closed):
            gaps.put_back(seconds)
        for asking in self._asking.values():
            asking.deadline -= seconds
            asking.busy_until -= seconds
        for peer in self._brought:
            self._brought[peer] -= seconds
        self._again_at -= seconds

    @property
    def can_ask(self) -> bool:
        """Whether there is a member to ask."""
        return bool(self._members)

    def take_due(self, now: float) -> list[Question]:
        """Return the questions to ask now: late ones again, wanted pieces first, then the lowest numbers."""
        for asking in [each for each in self._requests.values() if self._deadline(each) <= now]:
            note = f"no answer about {asking.what}"
            self._record(Reason.TIMEOUT, note, asking.peer)
            self._withdraw(asking)
        if not self._members:
            return []
        self._admit(now)
        waiting = [each for each in self._asking.values() if each.peer is None]
        questions = [self._next_question(each, now) for each in waiting]
        return [each for each in questions if each is not None]

    def next_at(self) -> float | None:
        """Return when to call `take_due` next; None: nothing is missing, or there is no member to ask."""
        if not self._members:
            return None
        times = [self._deadline(each) for each in self._requests.values()]
        times += [each.busy_until for each in self._asking.values() if each.peer is None]
        if len(self._asking) < self._config.replays_at_once:
            times += [0.0] if self._wanted or self._sought else []
            unasked = (gap for gap in self._gaps if gap.first not in self._asking)
            times += [gap.since + self._config.gap_delay for gap in unasked]
        return min(times, default=None)

    def handle_answer(self, peer: PeerId, request: int, code: Code, now: float) -> None:
        """Note an answer. After ``OK`` check the fragment, then call `handle_arrival`; if the check fails,
        call this again with ``INTERNAL_ERROR``, and the next member is asked."""
        asking = self._requests.get(request)
        if asking is None or asking.peer != peer:
            raise RemoteError(Reason.SURPLUS, f"an answer to request {request}, which is not open with it")
        if code is Code.OK:
            return
        if code is Code.ACCESS_DENIED:
            asking.denied[peer] = None
        elif code is Code.NOT_FOUND:
            asking.lacking[peer] = None
        elif code is Code.INTERNAL_ERROR:
            asking.busy_until = now + self._config.gap_delay
        self._withdraw(asking)
        self._close_if_denied(asking, now)

    def _alive(self, now: float) -> None:
        """Ask for parked numbers again, since the voice speaks; each time after a pause twice as long."""
        if (len(self._parked) or self._vain) and now >= self._again_at:
            self._pause = min(max(self._config.keepalive, 2 * self._pause), LONGEST_PAUSE)
            self._again_at = now + self._pause
            self.revive(now)

    def _admit(self, now: float) -> None:
        """Take up wanted pieces, then the lowest missing numbers, as far as there is room."""
        room = self._config.replays_at_once - len(self._asking)
        for wish in list(self._wanted)[: max(0, room)]:
            del self._wanted[wish]
            self._asking[wish] = _Asking(wish)
            room -= 1
        for number in list(self._sought)[: max(0, room)]:
            del self._sought[number]
            self._asking.setdefault(number, _Asking(number))
            room -= 1
        for gap in self._gaps:
            if room <= 0:
                return
            if gap.since + self._config.gap_delay > now:
                continue
            number = gap.first
            while number <= gap.last and room > 0:
                if number not in self._asking:
                    self._asking[number] = _Asking(number)
                    room -= 1
                number += 1

    def _next_question(self, asking: _Asking, now: float) -> Question | None:
        """Choose the next member to ask; None: the question was given up, or has to wait."""
        able = [peer for peer in self._members if peer not in asking.denied]
        if asking.tries >= self._config.replay_tries or not able:
            if not self._close_if_denied(asking, now):
                self._park(asking, now)
            return None
        fresh = [peer for peer in able if peer not in asking.asked]
        if not fresh:
            if asking.busy_until > now:
                return None
            asking.asked.clear()
            fresh = able
        peer = fresh[0]
        self._members[peer] = self._members.pop(peer)  # a member that was asked goes to the end
        self._request += 1
        asking.peer, asking.request = peer, self._request
        asking.asked[peer] = None
        asking.tries += 1
        asking.deadline = now + self._config.replay_timeout
        self._requests[self._request] = asking
        return Question(peer, self._replay(asking))

    def _deadline(self, asking: _Asking) -> float:
        """Return until when an answer may come. A member that brings one fragment after the other over a slow
        link gets more time for the next, within reason: otherwise all that is on its way would be asked for,
        and come, twice."""
        brought = 0.0 if asking.peer is None else self._brought.get(asking.peer, 0.0)
        latest = asking.deadline + (PATIENCE - 1) * self._config.replay_timeout
        return min(latest, max(asking.deadline, brought + self._config.replay_timeout))

    def _replay(self, asking: _Asking) -> Replay:
        if isinstance(asking.what, int):
            return Replay(self._place, asking.request, asking.what, 0, 0, 0)
        message, offset = asking.what
        return Replay(self._place, asking.request, None, message, offset, 0)

    def _withdraw(self, asking: _Asking) -> None:
        self._requests.pop(asking.request, None)
        asking.peer = None

    def _drop(self, what: int | Wish) -> None:
        asking = self._asking.pop(what, None)
        if asking is not None:
            self._withdraw(asking)

    def _close_if_denied(self, asking: _Asking, now: float) -> bool:
        """Stop asking for a piece that enough members say is not for us; return whether that is so."""
        ways = min(2, self._config.upstreams)
        is_sure = len(asking.denied) >= SURE
        # A member that joined after the fragment does not have it, and so cannot say; that is no matter if
        # enough others can.
        known = {**asking.denied, **(asking.lacking if is_sure else {})}
        # Among many members not all are asked: then those who were decide, if half of them deny it.
        is_over = asking.tries >= self._config.replay_tries and is_sure
        whom = asking.asked if is_over and 2 * len(asking.denied) >= asking.tries else self._members
        if len(asking.denied) < ways or any(peer not in known for peer in whom):
            return False
        self._drop(asking.what)
        if isinstance(asking.what, int) and self._gaps.fill(asking.what):
            self._closed.open(asking.what, asking.what, now)
        self._record(Reason.NOT_ALLOWED, f"all say that {asking.what} is not for us")
        return True

    def _park(self, asking: _Asking, now: float) -> None:
        self._drop(asking.what)
        what = asking.what
        if isinstance(what, int) and self._gaps.fill(what) and what < self._next:
            self._parked.open(what, what, now)  # later ones are only claimed to exist
        elif not isinstance(what, int) and len(self._vain) < WANTED:
            self._vain[what] = None
        self._record(Reason.GAP_UNFILLED, f"{asking.what} after {asking.tries} questions")

    def _record(self, reason: Reason, note: str, peer: PeerId | None = None) -> None:
        self._out.record(Record(Kind.DROPPED, self._place, peer=peer, reason=reason, note=note))


class Found(NamedTuple):
    """A stored fragment, with its head and its sender's card."""

    unit: Unverified
    head: Head
    card: Card | None


class _Rate:
    __slots__ = ("at", "left", "told")

    def __init__(self, left: float, at: float) -> None:
        self.left = left
        self.at = at
        self.told = False


class ReplayServer:
    """Answers replay questions from the store, each member at a bounded rate."""

    def __init__(
        self,
        place: TopicId,
        find: Callable[[Replay], Found | None],
        membership: MembershipTest,
        out: Outbox,
        rate: float = 2000.0,
    ) -> None:
        self._place = place
        self._find = find
        """Returns the stored fragment that a question asks for; None if it is not held."""
        self._membership = membership
        self._out = out
        self._rate = rate
        self._most = max(1.0, rate * BURST_SECONDS)
        self._askers: dict[AuthorId, _Rate] = {}

    def answer_replay(self, peer: PeerId, nym: AuthorId | None, question: Replay, now: float) -> None:
        """Send the fragment, or the reason why not. Without a nym the peer is a keeper: it needs no test."""
        self._out.committed.send(peer, self._answer(peer, nym, question, now))

    def _answer(self, peer: PeerId, nym: AuthorId | None, question: Replay, now: float) -> Replayed:
        asker = self._asker(AuthorId(peer) if nym is None else nym, now)
        if asker.left < 1.0:
            if not asker.told:
                self._record(peer, Reason.FLOODING, "replays past the rate")
            asker.told = True
            self._out.blame(peer, Reason.FLOODING)
            return self._code(question, Code.INTERNAL_ERROR)
        asker.left -= 1.0
        asker.told = False
        try:
            return self._checked(peer, nym, question, self._find(question))
        except StoreError as error:
            self._record(peer, Reason.NO_STORAGE, str(error)[:100])
            return self._code(question, Code.INTERNAL_ERROR)

    def _checked(self, peer: PeerId, nym: AuthorId | None, question: Replay, found: Found | None) -> Replayed:
        if found is None:
            return self._code(question, Code.NOT_FOUND)
        head = found.head
        yes = Verdict.YES
        verdict = yes if nym is None else self._membership.test(nym, head.message, head.generation)
        if verdict is yes or (nym is not None and is_farewell(head, nym)):
            return Replayed(self._place, question.request, Code.OK, found.unit, found.card)
        if verdict is Verdict.NO:
            self._record(peer, Reason.NOT_A_MEMBER, f"replay of fragment {head.fragment}")
            return self._code(question, Code.ACCESS_DENIED)
        self._record(peer, Reason.MISSING_DEPENDENCY, f"generation {head.generation} is not known")
        return self._code(question, Code.INTERNAL_ERROR)

    def _asker(self, nym: AuthorId, now: float) -> _Rate:
        asker = self._askers.pop(nym, None)
        if asker is None:
            if len(self._askers) >= ASKERS:
                del self._askers[next(iter(self._askers))]
            asker = _Rate(self._most, now)
        self._askers[nym] = asker
        asker.left = min(self._most, asker.left + max(0.0, now - asker.at) * self._rate)
        asker.at = now  # also where the clock was put back
        return asker

    def _code(self, question: Replay, code: Code) -> Replayed:
        return Replayed(self._place, question.request, code, None, None)

    def _record(self, peer: PeerId, reason: Reason, note: str) -> None:
        self._out.record(Record(Kind.REJECTED, self._place, peer=peer, reason=reason, note=note))
