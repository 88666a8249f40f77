"""The neighbours of one node in the tree of a place: who sends to it, and to whom it sends.

A node has several upstreams, so that a bad one cannot cut it off, and at most `fanout` downstreams.
Newcomers whom it cannot take are handed on to its downstreams in turn, so that the tree fills level by
level. Loops do no harm: a fragment that was seen is not passed on again. Hops are not signed: they are a
hint for the way up.
"""

from __future__ import annotations

from linnet.core.errors import Refused
from linnet.core.ids import AuthorId, Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox
from linnet.places.config import PlacesConfig
from linnet.places.messages import RELAYS
from linnet.trace.records import Kind, Record

SILENT = 64
"""New fragments after which an upstream that brought less than half of them is named."""
RESERVE = 2
"""Downstreams past the fan-out, for those to whom everybody else lies."""
LEASE = 60.0
"""Seconds that one of these stays at least; then the next one may have its place."""
FAR = 1 << 16
"""The hops of an upstream that has brought nothing yet."""


class Upstream:
    """Somebody who sends us fragments."""

    __slots__ = ("brought", "expected", "hops")

    def __init__(self) -> None:
        self.hops = FAR
        self.expected = 0
        self.brought = 0


class _Downstream:
    __slots__ = ("contact", "nym", "sent_there", "until")

    def __init__(self, contact: Contact, nym: AuthorId, sent_there: int, until: float | None) -> None:
        self.contact = contact
        self.nym = nym
        self.sent_there = sent_there
        """Newcomers that were handed on to it first."""
        self.until = until
        """When its place past the fan-out may be another's; None: it is no guest of the reserve."""


class Tree:
    """Upstreams and downstreams of one node in one place."""

    def __init__(self, place: TopicId, own: PeerId, config: PlacesConfig, out: Outbox) -> None:
        self._place = place
        self._out = out
        self._own = own
        self._config = config
        self._up: dict[PeerId, Upstream] = {}
        self._down: dict[PeerId, _Downstream] = {}

    @property
    def upstreams(self) -> tuple[PeerId, ...]:
        """Who sends to us."""
        return tuple(self._up)

    @property
    def downstreams(self) -> dict[PeerId, AuthorId]:
        """To whom we send, and who they are."""
        return {peer: each.nym for peer, each in self._down.items()}

    @property
    def lacks(self) -> int:
        """Upstreams that are to be found yet."""
        return max(0, self._config.upstreams - len(self._up))

    @property
    def surplus(self) -> tuple[PeerId, ...]:
        """Upstreams past those that we want, the farthest from the voice first."""
        farthest = sorted(self._up, key=lambda peer: -self._up[peer].hops)
        return tuple(farthest[: max(0, len(self._up) - self._config.upstreams)])

    @property
    def is_full(self) -> bool:
        """Whether newcomers are handed on."""
        return len(self._down) >= self._config.fanout

    def connect_up(self, peer: PeerId) -> None:
        """This one sends to us from now on."""
        if peer == self._own:
            raise Refused(Reason.NOT_ALLOWED, "nobody is its own relay")
        self._up.setdefault(peer, Upstream())

    def connect_down(self, contact: Contact, nym: AuthorId, stranded_at: float | None = None) -> bool:
        """Take somebody below us; False: we are full, or it is above us, and it is to be handed on.

        Whoever is stranded at this time is taken past the fan-out, if there is room in the reserve.
        """
        if contact.peer in self._down:
            self._down[contact.peer].contact = contact
            return True
        most = self._config.fanout + (0 if stranded_at is None else RESERVE)
        if len(self._down) >= most or contact.peer in self._up or contact.peer == self._own:
            return False
        least = min((each.sent_there for each in self._down.values()), default=0)
        until = stranded_at + LEASE if stranded_at is not None and self.is_full else None
        self._down[contact.peer] = _Downstream(contact, nym, least, until)
        return True

    def outstayed(self, newcomer: PeerId, now: float) -> PeerId | None:
        """Who has to go if this stranded one is to be taken: whose time in the reserve is over."""
        if newcomer in self._down or len(self._down) < self._config.fanout + RESERVE:
            return None
        over = (peer for peer, each in self._down.items() if each.until is not None and each.until <= now)
        return next(over, None)

    def put_back(self, seconds: float) -> None:
        """The clock was put back by so many seconds: what is to come is as far away as before."""
        for each in self._down.values():
            each.until = None if each.until is None else each.until - seconds

    def disconnect(self, peer: PeerId) -> None:
        """The link is gone, in both directions."""
        self._up.pop(peer, None)
        self._down.pop(peer, None)

    def redirect(self, newcomer: PeerId) -> tuple[Contact, ...]:
        """Whom a newcomer should ask instead: those who were given the fewest so far come first.

        Only who can be dialled is named. Empty: nobody can, and the newcomer has to be told so.
        """
        able = [each for peer, each in self._down.items() if peer != newcomer and each.contact.hints]
        able.sort(key=lambda each: each.sent_there)
        chosen = able[: min(RELAYS, 2 * self._config.upstreams)]
        for each in chosen[: self._config.upstreams]:
            each.sent_there += 1
        return tuple(each.contact for each in chosen)

    def way_up(self) -> PeerId | None:
        """The upstream nearest to the voice; None if there is none."""
        return min(self._up, key=lambda peer: self._up[peer].hops, default=None)

    def count_fragment(self, peer: PeerId, hops: int, new: bool) -> list[PeerId]:
        """Count a live fragment of an upstream, new or not, and tell which upstreams bring too few of them.

        These keep things back, or get nothing themselves: go elsewhere.
        """
        mine = self._up.get(peer)
        if mine is not None:
            mine.hops = hops
            mine.brought += 1
        return self._count() if new else []

    def _count(self) -> list[PeerId]:
        silent: list[PeerId] = []
        for peer, each in self._up.items():
            each.expected += 1
            if each.expected < SILENT:
                continue
            if 2 * each.brought < each.expected and len(self._up) > 1:
                note = f"brought {each.brought} of {each.expected} fragments"
                reason = Reason.SLOW_PEER
                self._out.record(Record(Kind.DROPPED, self._place, peer=peer, reason=reason, note=note))
                silent.append(peer)
            each.expected = each.brought = 0
        return silent
