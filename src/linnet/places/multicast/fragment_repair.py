"""Fragments that did not come: noticed by their numbers, asked for one by one, and given to whoever asks.

Toth 2013, section 3.8. A gap may close by itself, by another way, so a question waits a little, and is
dropped when the fragment comes. Members are asked in turn. One that says that we may not see a fragment is
not asked for it again; when all say so, and more than one where there is more than one way up, the fragment
is closed to us and no longer missing. A range of missing numbers costs the same whether it holds one number
or 10¹²: numbers come from others.

Every answer has its own membership test, without the memory that relaying has. A test that cannot be decided
here is our fault, not the asker's: it is told to ask another, never that it may not.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from linnet.core.errors import RemoteError, StoreError
from linnet.core.ids import AuthorId, PeerId, TopicId
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.event.event import Unverified
from linnet.identity.cards import Card
from linnet.machine.outbox import Outbox
from linnet.places.config import PlacesConfig
from linnet.places.messages import Code, Replay, Replayed
from linnet.places.multicast.fragmentation import Head
from linnet.places.multicast.relay_filter import MembershipTest, Verdict, is_farewell
from linnet.trace.records import Kind, Record

RANGES = 16_384
"""Gaps at once: who speaks in so many scattered numbers is not honest."""
PATIENCE = 16
"""Times `replay_timeout` that an answer may take of somebody who brings others meanwhile."""
SURE = 3
"""Members who say that a fragment is not for us, where the others do not have it."""
LONGEST_PAUSE = 3600.0
"""Seconds until what nobody had is asked for again, at most."""
WANTED = 4096
"""Pieces that may be asked for by their message at once."""

Wish = tuple[int, int]
"""A message and an offset in it."""
ASKERS = 4096
"""Members whose rate is remembered; the one unheard of for longest is forgotten."""
BURST_SECONDS = 0.5
"""So many seconds of the rate may be asked at once."""


class Gap(NamedTuple):
    """A range of numbers, both ends included."""

    first: int
    last: int
    since: float


class Gaps:
    """Disjoint ranges, lowest first."""

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
        """Numbers in all ranges."""
        return sum(gap.last - gap.first + 1 for gap in self._gaps)

    def open(self, first: int, last: int, since: float) -> None:
        """Add a range; what of it is there already stays as it is."""
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
        """Take a number out; whether it was in."""
        index = self._index(number)
        if index is None:
            return False
        first, last, since = self._gaps[index]
        rest = [Gap(first, number - 1, since), Gap(number + 1, last, since)]
        self._gaps[index : index + 1] = [gap for gap in rest if gap.first <= gap.last]
        return True

    def splits(self, number: int) -> bool:
        """Whether taking this number out would make two ranges of one."""
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
        """The clock was put back by so many seconds: they were noticed as long ago as before."""
        self._gaps = [Gap(gap.first, gap.last, gap.since - seconds) for gap in self._gaps]

    def clear(self) -> None:
        """Forget all."""
        self._gaps.clear()

    def _index(self, number: int) -> int | None:
        index = bisect_left(self._gaps, number, key=lambda gap: gap.last)
        return index if index < len(self._gaps) and self._gaps[index].first <= number else None


class Question(NamedTuple):
    """What is to be asked of whom."""

    peer: PeerId
    message: Message


class _Asking:
    __slots__ = ("asked", "busy_until", "deadline", "denied", "lacking", "peer", "request", "tries", "what")

    def __init__(self, what: int | Wish) -> None:
        self.what = what
        self.tries = 0
        self.asked: dict[PeerId, None] = {}
        """In this round."""
        self.denied: dict[PeerId, None] = {}
        self.lacking: dict[PeerId, None] = {}
        """Who does not have it."""
        self.peer: PeerId | None = None
        """None: to be asked next."""
        self.request = 0
        self.deadline = 0.0
        self.busy_until = 0.0
        """When to ask again those who could not answer just now."""


class FragmentRepair:
    """What one node lacks of a place, and whom it asks."""

    def __init__(
        self,
        place: TopicId,
        config: PlacesConfig,
        out: Outbox,
        upto: int = 0,
        gaps: Iterable[tuple[int, int]] = (),
    ) -> None:
        """Numbers below `upto` were seen, but for those in the gaps: they were missing when we stopped."""
        self._place = place
        self._config = config
        self._out = out
        self._next = upto
        """The number after the highest that was seen."""
        self._gaps = Gaps()
        for first, last in gaps:
            self._gaps.open(first, last, 0.0)
        self._parked = Gaps()
        """Asked for in vain, until somebody else connects or a sign of life comes."""
        self._pause = self._again_at = 0.0
        """How long what is parked is left, and until when."""
        self._closed = Gaps()
        self._wanted: dict[Wish, None] = {}
        self._sought: dict[int, None] = {}
        """Numbers to ask for though another fragment may have come under them."""
        self._asking: dict[int | Wish, _Asking] = {}
        self._requests: dict[int, _Asking] = {}
        self._request = 0
        self._members: dict[PeerId, None] = {}
        self._brought: dict[PeerId, float] = {}
        """When each last brought something that it was asked for."""

    @property
    def count(self) -> int:
        """Fragments that are missing, by number."""
        return self._gaps.count + self._parked.count

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to ask, and nothing was found to be closed."""
        return not (self._asking or self._wanted or self._sought or self._gaps or self._closed)

    @property
    def is_wishing(self) -> bool:
        """Whether pieces are to be asked for by their messages."""
        return bool(self._wanted)

    @property
    def is_stuck(self) -> bool:
        """Whether something was asked for in vain: those who are connected do not have it."""
        return bool(len(self._parked))

    @property
    def closed(self) -> list[tuple[int, int]]:
        """Fragments that are not for us, as all say."""
        return [(gap.first, gap.last) for gap in self._closed]

    @property
    def asking(self) -> int:
        """Questions that are open."""
        return len(self._requests)

    def connect(self, peer: PeerId, now: float) -> None:
        """Another member may be asked, also for what nobody else had."""
        if peer not in self._members:
            self._members[peer] = None
            self.revive(now)

    def disconnect(self, peer: PeerId) -> None:
        """This one can be asked no more; what it was asked goes to the next."""
        self._members.pop(peer, None)
        self._brought.pop(peer, None)
        for asking in [each for each in self._requests.values() if each.peer == peer]:
            self._withdraw(asking)

    def start(self, upto: int) -> None:
        """What is below this is not for us: we came in later."""
        self._next = max(self._next, upto)
        for gaps in (self._gaps, self._parked, self._closed):
            gaps.begin(upto)
        for number in [number for number in self._sought if number < upto]:
            del self._sought[number]
        for what in [what for what in self._asking if isinstance(what, int) and what < upto]:
            self._drop(what)

    def revive(self, now: float) -> None:
        """Ask again for what was left."""
        for gap in self._parked:
            self._gaps.open(gap.first, gap.last, now)
        self._parked.clear()

    def reopen(self, now: float) -> None:
        """What was closed may be open by now: our membership changed."""
        for gap in self._closed:
            self._gaps.open(gap.first, gap.last, now)
        self._closed.clear()

    def note_number(self, number: int, now: float) -> None:
        """Note that there is a fragment of this number: it is missing until it comes, and what lies below."""
        if number < self._next:
            return
        if len(self._gaps) >= RANGES:
            raise RemoteError(Reason.TOO_MANY, f"{RANGES} gaps in the numbers of one place")
        self._gaps.open(self._next, number, now)
        self._next = number + 1

    def note_unverified(self, number: int, now: float) -> None:
        """Note that somebody says, unsigned, that there is a fragment of this number. It alone is asked for:
        only if it comes, what lies below is known to be missing."""
        if number >= self._next and len(self._gaps) < RANGES:
            self._gaps.open(number, number, now)

    def handle_arrival(self, head: Head, now: float) -> None:
        """Ask for a fragment no more that is here and was checked."""
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
        self._sought.pop(head.fragment, None)
        for what in (head.fragment, wish):
            asking = self._asking.get(what)
            if asking is not None:
                if asking.peer is not None:
                    self._brought[asking.peer] = now
                self._drop(what)

    def want(self, message: int, offset: int = 0) -> bool:
        """Ask for this piece before all others: state rests on it. False: too many are wanted already."""
        wish = (message, offset)
        if wish in self._wanted or wish in self._asking:
            return True
        if len(self._wanted) >= WANTED:
            return False
        self._wanted[wish] = None
        return True

    def seek(self, number: int) -> None:
        """Ask for the fragment that others have under this number: a term is opened behind it."""
        if len(self._sought) < WANTED:
            self._sought[number] = None

    def handle_found(self, number: int) -> None:
        """Seek a fragment no more that is here beside the line."""
        self._sought.pop(number, None)
        if number not in self._gaps:
            self._drop(number)

    def rewind(self, number: int, message: int) -> None:
        """The line was cut behind this message: numbers from this one on are given anew."""
        self._next = min(self._next, number)
        for gaps in (self._gaps, self._parked, self._closed):
            gaps.cut(number)
        for wish in [wish for wish in self._wanted if wish[0] > message]:
            del self._wanted[wish]
        for what in list(self._asking):
            if what >= number if isinstance(what, int) else what[0] > message:
                self._drop(what)

    def is_wanted(self, message: int, offset: int) -> bool:
        """Whether this piece is still being asked for, and there is somebody to ask."""
        wish = (message, offset)
        return bool(self._members) and (wish in self._wanted or wish in self._asking)

    def put_back(self, seconds: float) -> None:
        """The clock was put back by so many seconds: what is to come is as far away as before."""
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
        """Whether anybody is connected."""
        return bool(self._members)

    def take_due(self, now: float) -> list[Question]:
        """Take the questions to ask now: late ones again, wanted pieces first, then the lowest numbers."""
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
        """When `take_due` should be called next; None: nothing is missing, or nobody is there to ask."""
        if not self._members:
            return None
        times = [self._deadline(each) for each in self._requests.values()]
        times += [each.busy_until for each in self._asking.values() if each.peer is None]
        if len(self._asking) < self._config.replays_at_once:
            times += [0.0] if self._wanted or self._sought else []
            times += [gap.since + self._config.gap_delay for gap in self._gaps if self._unasked(gap.first)]
        return min(times, default=None)

    def handle_answer(self, peer: PeerId, request: int, code: Code, now: float) -> None:
        """Note an answer. With ``OK`` the fragment is to be checked, then `handle_arrival` called; where the
        check fails this is to be called with ``INTERNAL_ERROR``, and the next member is asked."""
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
        """Somebody speaks: what was left is asked for again, each time after twice as long."""
        if len(self._parked) and now >= self._again_at:
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
        """Choose whom to ask; None: it was given up, or has to wait."""
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
        self._members[peer] = self._members.pop(peer)  # whoever was asked is asked last
        self._request += 1
        asking.peer, asking.request = peer, self._request
        asking.asked[peer] = None
        asking.tries += 1
        asking.deadline = now + self._config.replay_timeout
        self._requests[self._request] = asking
        return Question(peer, self._replay(asking))

    def _deadline(self, asking: _Asking) -> float:
        """Until when its answer may come: who brings one after the other over a slow link is not late with
        the next, within reason. Otherwise all that is on its way would be asked for, and come, once more."""
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
        """Ask no more for what enough members say is not for us; whether that is so."""
        ways = min(2, self._config.upstreams)
        is_sure = len(asking.denied) >= SURE
        # Who came later does not have it, and so cannot say; where enough others do that is no matter.
        known = {**asking.denied, **(asking.lacking if is_sure else {})}
        # Among many not all are asked: then those who were decide, if half of them deny it.
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
            self._parked.open(what, what, now)  # later ones are there by somebody's word alone
        self._record(Reason.GAP_UNFILLED, f"{asking.what} after {asking.tries} questions")

    def _record(self, reason: Reason, note: str, peer: PeerId | None = None) -> None:
        self._out.record(Record(Kind.DROPPED, self._place, peer=peer, reason=reason, note=note))

    def _unasked(self, number: int) -> bool:
        return number not in self._asking


class Found(NamedTuple):
    """A fragment as it came, with what was read of it."""

    unit: Unverified
    head: Head
    card: Card | None


class Fragments(Protocol):
    """What is held of a place."""

    def get(self, fragment: int) -> Found | None:
        """By its number."""

    def get_at(self, message: int, offset: int) -> Found | None:
        """By its message, and the bytes of it that come before."""


class _Rate:
    __slots__ = ("at", "left", "told")

    def __init__(self, left: float, at: float) -> None:
        self.left = left
        self.at = at
        self.told = False


class ReplayServer:
    """Answers from what is held, each member at a bounded rate."""

    def __init__(
        self,
        place: TopicId,
        fragments: Fragments,
        membership: MembershipTest,
        out: Outbox,
        rate: float = 2000.0,
    ) -> None:
        self._place = place
        self._fragments = fragments
        self._membership = membership
        self._out = out
        self._rate = rate
        self._most = max(1.0, rate * BURST_SECONDS)
        self._askers: dict[AuthorId, _Rate] = {}

    def answer_replay(self, peer: PeerId, nym: AuthorId | None, question: Replay, now: float) -> int:
        """Send the fragment, or why not; without a nym to a keeper, for which there is no test.

        The flags of the question, for whoever answers above us.
        """
        self._out.committed.send(peer, self._answer(peer, nym, question, now))
        return question.flags

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
            found = self._find(question)
            return self._checked(peer, nym, question, found)
        except StoreError as error:
            self._record(peer, Reason.NO_STORAGE, str(error)[:100])
            return self._code(question, Code.INTERNAL_ERROR)

    def _find(self, question: Replay) -> Found | None:
        if question.fragment is not None:
            return self._fragments.get(question.fragment)
        return self._fragments.get_at(question.message, question.offset)

    def _checked(self, peer: PeerId, nym: AuthorId | None, question: Replay, found: Found | None) -> Replayed:
        if found is None:
            return self._code(question, Code.NOT_FOUND)
        head = found.head
        yes = Verdict.YES.name
        verdict = yes if nym is None else self._membership.test(nym, head.message, head.generation).name
        if verdict == yes or (nym is not None and is_farewell(head, nym)):
            return Replayed(self._place, question.request, Code.OK, found.unit, found.card)
        if verdict == Verdict.NO.name:
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
