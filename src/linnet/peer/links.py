"""The links of a node: who needs which, when to dial again, who is alive, who misbehaves.

The parts say `Hold` and `Release`; the first hold on a peer dials it, and a lost link is dialled
again with back-off while anyone holds it. The back-off (`linnet.peer.backoff`) outlives the last release.
Both ends tell each other whether they need the link; it closes when neither does, so a pair that shares
several streams keeps one link until the last of them lets go (Juslenius 2021, section 4.1).
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from linnet.core.effects import Blame, Dial, HangUp, Hold, Release, Send, SetTimer
from linnet.core.ids import PeerId
from linnet.core.inputs import LinkUp
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.core.timers import Tick
from linnet.peer.backoff import LASTING, Backoff
from linnet.peer.config import LinkConfig
from linnet.peer.interface import PeerStatus
from linnet.peer.messages import LinkMessage, Needed, Ping, Pong
from linnet.trace.records import Record

OWNER = "links"
LinksEffect = Send[LinkMessage] | Dial | HangUp | SetTimer[Tick] | Record

_GRAVE = (Reason.BAD_SIGNATURE, Reason.MALFORMED, Reason.FORKED_CHAIN)
"""What nobody honest sends: each counts as an offence. Others may come of crossing messages, and
count as control messages do."""


_SHUNNED = (Reason.FLOODING, Reason.FORGING, Reason.REPLAYING)
"""Who was cut off for these is left alone for the longest back-off, whoever dials."""


class _Link:
    """What is known of one peer."""

    __slots__ = (
        "agent",
        "allowance",
        "dialed",
        "dialing",
        "failure",
        "hints",
        "holds",
        "needed",
        "offences",
        "ping",
        "pinged_at",
        "pings_lost",
        "roles",
        "rtt",
        "up_at",
    )

    def __init__(self) -> None:
        self.holds: dict[str, None] = {}
        self.hints: tuple[str, ...] = ()
        self.up_at: float | None = None
        self.dialed = False
        self.dialing = False
        self.needed = False
        self.failure: Reason | None = None
        self.ping = 0
        self.pinged_at: float | None = None
        self.pings_lost = 0
        self.rtt: float | None = None
        self.roles: tuple[str, ...] = ()
        self.agent = ""
        # Both as (amount left, when it was so): they fill up again with time.
        self.allowance = (0.0, 0.0)
        self.offences = (0.0, 0.0)


class Links:
    """All links of a node, open and wanted."""

    def __init__(self, ours: PeerId, config: LinkConfig, rng: Random, cells: Cells | None = None) -> None:
        self._ours = ours
        self._config = config
        self._backoff = Backoff(config, rng, cells)
        self._links: dict[PeerId, _Link] = {}
        self.blocked: dict[PeerId, None] = {}
        self._is_asleep = False
        self.reach: Callable[[PeerId, tuple[str, ...]], tuple[str, ...]] = lambda peer, hints: hints
        """Which of the addresses of a peer may be dialled from here."""
        self.located: Callable[[PeerId, tuple[str, ...]], tuple[str, ...]] = lambda peer, hints: hints
        """Where a peer is, by its own word and then by these hints."""
        self._shunned: dict[PeerId, tuple[float, Reason]] = {}
        """Until when, and why; the latest are last."""

    def is_up(self, peer: PeerId) -> bool:
        """Whether a link to this peer is open."""
        link = self._links.get(peer)
        return link is not None and link.up_at is not None

    @property
    def up(self) -> list[PeerId]:
        """Peers with an open link."""
        return [peer for peer, link in self._links.items() if link.up_at is not None]

    # What the parts want.

    def hold(self, hold: Hold, now: float) -> list[LinksEffect]:
        """A part needs this link."""
        link = self._links.setdefault(hold.peer, _Link())
        first = not link.holds
        link.holds[hold.purpose] = None
        if hold.hints:
            link.hints = hold.hints
        if link.up_at is not None:
            return [Send(hold.peer, Needed(True))] if first else []
        return [] if link.dialing or (not first and not hold.hints) else self._dial(hold.peer, link, now)

    def hasten(self, peer: PeerId) -> None:
        """Whoever runs this node wants a peer tried at once, however often it did not answer."""
        self._backoff.forgive(peer)

    def seek(self, peer: PeerId, now: float) -> list[LinksEffect]:
        """It was heard where a peer is: if it is needed it is dialled there at once."""
        link = self._links.get(peer)
        if link is None or not link.holds or link.up_at is not None or link.dialing:
            return []
        return self._dial(peer, link, now)

    def release(self, release: Release) -> list[LinksEffect]:
        """A part needs this link no longer."""
        link = self._links.get(release.peer)
        if link is None or link.holds.pop(release.purpose, self) is self or link.holds:
            return []
        if link.up_at is None:
            if not link.dialing:
                del self._links[release.peer]
            return []
        if link.needed:
            return [Send(release.peer, Needed(False))]
        return [
            Send(release.peer, Needed(False)),
            SetTimer(self._config.idle_timeout, self._tick("idle", release.peer)),
        ]

    def blame(self, blame: Blame, now: float) -> list[LinksEffect]:
        """A peer sent what it must not; too much of that ends its link."""
        link = self._links.get(blame.peer)
        if link is None or link.up_at is None:
            return []
        if blame.reason not in _GRAVE:
            return [] if self.spend(blame.peer, now) else [HangUp(blame.peer, Reason.FLOODING)]
        most = float(self._config.offences)
        left = _refilled(link.offences, most, most / 60.0, now) - 1.0
        link.offences = (left, now)
        return [HangUp(blame.peer, Reason.FORGING)] if left < 0 else []

    def block(self, peer: PeerId, blocked: bool, now: float) -> list[LinksEffect]:
        """Have nothing to do with a peer any more, or again."""
        if not blocked:
            self.blocked.pop(peer, None)
            link = self._links.get(peer)
            return [] if link is None else self._dial_now(peer, link, now)
        self.blocked[peer] = None
        return [HangUp(peer, Reason.BLOCKED)] if self.is_up(peer) else []

    def sleep(self) -> list[LinksEffect]:
        """Close every link and dial nobody, until `wake`; who holds which is remembered."""
        self._is_asleep = True
        return [HangUp(peer, Reason.NOT_NEEDED) for peer in self.up]

    def wake(self, now: float) -> list[LinksEffect]:
        """Dial whoever is held, at once."""
        self._is_asleep = False
        effects: list[LinksEffect] = []
        for peer, link in self._links.items():
            effects += self._dial_now(peer, link, now)
        return effects

    # What happens.

    def link_up(self, event: LinkUp, now: float) -> tuple[list[LinksEffect], bool]:
        """A link is open; the second is whether it may stay."""
        if event.peer in self.blocked:
            return [HangUp(event.peer, Reason.BLOCKED)], False
        if self._is_asleep:
            return [HangUp(event.peer, Reason.NOT_NEEDED)], False
        until, reason = self._shunned.get(event.peer, (now, Reason.BLOCKED))
        if now < until:
            return [HangUp(event.peer, reason)], False
        link = self._links.setdefault(event.peer, _Link())
        most = self._config.max_links
        if not link.holds and len(self._links) >= most and len(self.up) >= most:
            return [HangUp(event.peer, Reason.TOO_MANY_LINKS)], False
        link.up_at, link.dialed, link.dialing, link.needed = now, event.dialed, False, False
        link.failure = None
        link.roles, link.agent = event.hello.roles, event.hello.agent
        link.hints = link.hints or event.hello.listens
        link.offences = (float(self._config.offences), now)
        link.allowance = (self._config.control_rate * 10.0, now)
        effects: list[LinksEffect] = [*self._ping(event.peer, link, now)]
        if link.holds:
            effects.append(Send(event.peer, Needed(True)))
        else:
            effects.append(SetTimer(self._config.idle_timeout, self._tick("idle", event.peer)))
        return effects, True

    def link_down(self, peer: PeerId, reason: Reason, now: float) -> list[LinksEffect]:
        """A link is gone; it is dialled again if it is needed here."""
        if reason in _SHUNNED and self.is_up(peer):
            self._shun(peer, reason, now)
        link = self._links.get(peer)
        if link is not None and link.up_at is not None and now - link.up_at >= LASTING:
            self._backoff.forgive(peer)
            if not link.holds and reason not in _SHUNNED:
                return self._forget(peer)
        return self._lost(peer, reason, now)

    def dial_failed(self, peer: PeerId, reason: Reason, now: float) -> list[LinksEffect]:
        """No link came of dialling."""
        return self._lost(peer, reason, now)

    def on_message(self, peer: PeerId, message: LinkMessage, now: float) -> list[LinksEffect]:
        """What the other end says about the link itself."""
        link = self._links.get(peer)
        if link is None:
            return []
        if isinstance(message, Ping):
            return [Send(peer, Pong(message.number))]
        if isinstance(message, Pong):
            if link.pinged_at is None or message.number > link.ping:
                return []
            link.pings_lost = 0  # late, but alive
            if message.number < link.ping:
                return []
            link.rtt = now - link.pinged_at
            link.pinged_at = None
            return [SetTimer(self._config.ping_period, self._tick("ping", peer))]
        if isinstance(message, Needed):
            link.needed = message.needed
            if not link.needed and not link.holds:
                return [SetTimer(0.0, self._tick("idle", peer))]
        return []

    def rtt(self, peer: PeerId) -> float | None:
        """The round-trip time of a link, if it was measured."""
        link = self._links.get(peer)
        return None if link is None else link.rtt

    def spend(self, peer: PeerId, now: float) -> bool:
        """Count a control message of a peer; whether it is within what a peer may send."""
        link = self._links.get(peer)
        if link is None:
            return True
        # `_refilled`, written out: this is asked for every message.
        rate = self._config.control_rate
        left, at = link.allowance
        if now > at:  # A clock may be put back.
            left += (now - at) * rate
        left = (left if left < rate * 10.0 else rate * 10.0) - 1.0
        link.allowance = (left, now)
        return left >= 0

    def fired(self, tick: Tick, now: float) -> list[LinksEffect]:
        """A timer of a link has run out."""
        peer = PeerId(tick.key)
        link = self._links.get(peer)
        if link is None:
            return []
        if tick.what == "dial":
            is_wanted = link.holds and link.up_at is None and not link.dialing
            return self._dial(peer, link, now) if is_wanted else []
        if link.up_at is None:
            return []
        if tick.what == "idle":
            return [] if link.holds or link.needed else [HangUp(peer, Reason.NOT_NEEDED)]
        if link.pinged_at is not None:
            link.pings_lost += 1
            if link.pings_lost >= self._config.ping_tries:
                return [HangUp(peer, Reason.PING_TIMEOUT)]
        return self._ping(peer, link, now)

    def status(self) -> tuple[PeerStatus, ...]:
        """Every link, open or wanted."""
        return tuple(
            PeerStatus(
                peer,
                link.up_at is not None,
                link.dialed,
                tuple(link.holds),
                link.needed,
                link.rtt,
                link.up_at,
                link.agent,
                link.roles,
                link.failure,
                None if link.up_at is not None else self._backoff.since(peer),
            )
            for peer, link in self._links.items()
        )

    def _lost(self, peer: PeerId, reason: Reason, now: float) -> list[LinksEffect]:
        link = self._links.get(peer)
        if link is None:
            return []
        link.up_at, link.dialing, link.failure, link.pinged_at = None, False, reason, None
        link.pings_lost = 0
        config = self._config
        least = config.backoff_most if reason in _SHUNNED else config.backoff_first
        if link.holds or self._backoff.is_tried(peer):
            self._backoff.failed(peer, self._hints(peer, link), now, least)
        return self._dial(peer, link, now) if link.holds else self._forget(peer)

    def _forget(self, peer: PeerId) -> list[LinksEffect]:
        del self._links[peer]
        return []

    def _shun(self, peer: PeerId, reason: Reason, now: float) -> None:
        self._shunned.pop(peer, None)
        self._shunned[peer] = (now + self._config.backoff_most / 2, reason)
        while len(self._shunned) > self._config.max_links or next(iter(self._shunned.values()))[0] < now:
            del self._shunned[next(iter(self._shunned))]

    def _dial_now(self, peer: PeerId, link: _Link, now: float) -> list[LinksEffect]:
        """Dial a peer that is held and was left alone for a while."""
        if not link.holds or link.up_at is not None or link.dialing:
            return []
        self._backoff.forgive(peer)
        return self._dial(peer, link, now)

    def _dial(self, peer: PeerId, link: _Link, now: float) -> list[LinksEffect]:
        """Dial a peer, or wait until it may be dialled again."""
        hints = self._hints(peer, link)
        if peer in self.blocked or not hints or self._is_asleep:
            # Without an address the other end has to open the link: it is told to as we are.
            return []
        wait = self._backoff.wait(peer, hints, now)
        if wait > 0:
            return [SetTimer(wait, self._tick("dial", peer))]
        self._backoff.dialed(peer, hints, now)
        link.dialing = True
        return [Dial(peer, hints)]

    def _hints(self, peer: PeerId, link: _Link) -> tuple[str, ...]:
        return self.reach(peer, self.located(peer, link.hints))

    def _ping(self, peer: PeerId, link: _Link, now: float) -> list[LinksEffect]:
        link.ping += 1
        link.pinged_at = now
        return [Send(peer, Ping(link.ping)), SetTimer(self._config.ping_timeout, self._tick("ping", peer))]

    def _tick(self, what: str, peer: PeerId) -> Tick:
        return Tick(OWNER, what, peer)


def _refilled(bucket: tuple[float, float], most: float, rate: float, now: float) -> float:
    left, at = bucket
    return min(most, left + max(0.0, now - at) * rate)
