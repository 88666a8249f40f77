"""The links of a node: which parts need them, when to dial again, which peers are alive or misbehave.

Parts send `Hold` and `Release`; the first hold on a peer dials it, and a lost link is dialled again with
back-off while any part holds it. The back-off (`linnet.peer.backoff`) outlives the last release. Both ends
tell each other whether they need the link; it closes when neither does, so a pair that shares several streams
keeps one link until the last of them releases it (Juslenius 2021, section 4.1).
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from msgspec import Struct

from linnet.core.effects import Blame, Hold, Probe, Release
from linnet.core.errors import Refused
from linnet.core.ids import PeerId
from linnet.core.inputs import LinkUp
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.core.timers import Timer
from linnet.event.times import clock_behind
from linnet.machine.commands import BLOCKED_HERE, Done
from linnet.machine.outbox import Notice, Outbox
from linnet.machine.part import Part, on_command, on_message, on_timer
from linnet.peer.backoff import LASTING, Backoff
from linnet.peer.config import LinkConfig
from linnet.peer.interface import Block, Connect, Disconnect, PeerStatus, Unanswered
from linnet.peer.messages import Bye, Needed, Ping, Pong, Unsupported
from linnet.trace.records import Kind, Record

_MICROSECONDS = 1_000_000
_BLOCKED = "blocked"
"""The cells of blocked peers."""
_ASKED = "asked"
"""The purpose of links that the application requested."""
_OURSELVES = "this is the device of this node itself; name another's, as its linnet up prints"

_GRAVE = (Reason.BAD_SIGNATURE, Reason.MALFORMED, Reason.FORKED_CHAIN)
"""Reasons that no honest node causes: each counts as an offence. Others may come from messages that crossed,
and count as control messages do."""


_SHUNNED = (Reason.FLOODING, Reason.FORGING, Reason.REPLAYING)
"""Reasons to cut off a peer: it is then left alone for the longest back-off, whoever dials."""


class RedialDue(Timer, frozen=True):
    """The back-off before the next attempt to reach a held peer is over."""

    peer: PeerId


class ProbeDue(Timer, frozen=True):
    """Time to try a peer again at the addresses that it gives."""

    peer: PeerId


class IdleDue(Timer, frozen=True):
    """A link that nobody needed has been open for long enough."""

    peer: PeerId


class PingDue(Timer, frozen=True):
    """Time to ping a peer again, or its answer is overdue."""

    peer: PeerId


class RoundTripMeasured(Notice, frozen=True, gc=False):
    """The time that a peer takes to answer, in seconds."""

    peer: PeerId
    seconds: float


class _Link(Struct, eq=False):
    """The state of one peer."""

    holds: dict[str, None] = {}
    hints: tuple[str, ...] = ()
    up_at: float | None = None
    dialed: bool = False
    dialing: bool = False
    needed: bool = False
    failure: Reason | None = None
    ping: int = 0
    pinged_at: float | None = None
    pings_lost: int = 0
    rtt: float | None = None
    roles: tuple[str, ...] = ()
    agent: str = ""
    # Both as (amount left, time of that amount): they fill up again with time.
    allowance: tuple[float, float] = (0.0, 0.0)
    offences: tuple[float, float] = (0.0, 0.0)

    @property
    def is_wanted(self) -> bool:
        """Whether some part needs it and it is neither open nor being dialled."""
        return bool(self.holds) and self.up_at is None and not self.dialing


class PeerClocks:
    """For each linked peer, how far its clock was ahead of ours when it last told the time.

    Each answer to a ping tells it. For `linnet doctor` and for the marks of doubtful times, never for a
    decision.
    """

    def __init__(self) -> None:
        self._ahead: dict[PeerId, float] = {}

    def heard(self, peer: PeerId, sent_us: int, now: float) -> None:
        """Note the peer's time in a message, which was under way for a moment."""
        self._ahead[peer] = sent_us / _MICROSECONDS - now

    def gone(self, peer: PeerId) -> None:
        """Forget the clock of a peer whose link is gone."""
        self._ahead.pop(peer, None)

    def ahead(self) -> tuple[float, ...]:
        """Return the seconds by which each clock is ahead, sorted."""
        return tuple(sorted(self._ahead.values()))

    def behind(self) -> float:
        """Return by how many seconds our clock is behind those of most peers; 0 if it is not, or unknown."""
        return clock_behind(tuple(self._ahead.values()))


class Links(Part):
    """All links of a node, open or wanted."""

    def __init__(self, ours: PeerId, config: LinkConfig, rng: Random, out: Outbox, cells: Cells) -> None:
        self.ours = ours
        self._config = config
        self._out = out
        self._backoff = Backoff(config, rng, cells)
        # Not kept over restarts: each probe follows a link that the peer has opened to us, so no start by
        # itself repeats probes.
        self._probes = Backoff(config, rng)
        self._probes_waiting: dict[PeerId, Probe] = {}
        self._links: dict[PeerId, _Link] = {}
        self._cells = cells
        self.blocked: dict[PeerId, None] = {PeerId(key): None for key, _ in cells.scan(_BLOCKED)}
        """Peers with which this node has nothing to do."""
        self._is_asleep = False
        self.clocks = PeerClocks()
        self.reach: Callable[[PeerId, tuple[str, ...]], tuple[str, ...]] = lambda peer, hints: hints
        """Returns which addresses of a peer may be dialled from here."""
        self.located: Callable[[PeerId, tuple[str, ...]], tuple[str, ...]] = lambda peer, hints: hints
        """Returns the addresses of a peer: those it signed itself, then these hints."""
        self.why_foreign: Callable[[PeerId], str | None] = lambda peer: None
        """Returns why this node may have no link to a peer; None: it may."""
        self._shunned: dict[PeerId, tuple[float, Reason]] = {}
        """Until when each peer is shunned, and why; the latest are last."""

    def is_up(self, peer: PeerId) -> bool:
        """Return whether a link to this peer is open."""
        link = self._links.get(peer)
        return link is not None and link.up_at is not None

    @property
    def up(self) -> list[PeerId]:
        """Peers with an open link."""
        return [peer for peer, link in self._links.items() if link.up_at is not None]

    # Requests of the parts.

    def hold(self, hold: Hold, now: float) -> None:
        """Hold a link for a part."""
        link = self._links.setdefault(hold.peer, _Link())
        first = not link.holds
        link.holds[hold.purpose] = None
        if hold.hints:
            link.hints = hold.hints
        if link.up_at is not None:
            if first:
                self._out.send(hold.peer, Needed(True))
        elif not link.dialing and (first or hold.hints):
            self._dial(hold.peer, link, now)

    def hasten(self, peer: PeerId) -> None:
        """Have a peer tried at once at the user's request, however often it did not answer."""
        self._backoff.forgive(peer)

    def seek(self, peer: PeerId, now: float) -> None:
        """Dial a peer at once at a newly learned address, if it is needed."""
        link = self._links.get(peer)
        if link is not None and link.is_wanted:
            self._dial(peer, link, now)

    def release(self, release: Release) -> None:
        """Release a part's hold on a link."""
        link = self._links.get(release.peer)
        if link is None or link.holds.pop(release.purpose, self) is self or link.holds:
            return
        if link.up_at is None:
            if not link.dialing:
                del self._links[release.peer]
            return
        self._out.send(release.peer, Needed(False))
        if not link.needed:
            self._out.set_timer(self._config.idle_timeout, IdleDue(release.peer))

    def blame(self, blame: Blame, now: float) -> None:
        """Count an offence of a peer; too many close its link."""
        link = self._links.get(blame.peer)
        if link is None or link.up_at is None:
            return
        if blame.reason not in _GRAVE:
            if not self.spend(blame.peer, now):
                self._out.hang_up(blame.peer, Reason.FLOODING)
            return
        most = float(self._config.offences)
        left = _refilled(link.offences, most, most / 60.0, now) - 1.0
        link.offences = (left, now)
        if left < 0:
            self._out.hang_up(blame.peer, Reason.FORGING)

    def probe(self, probe: Probe, now: float) -> None:
        """Dial a peer for a tracker to see if it answers; one that names ever new addresses waits."""
        peer = probe.peer
        wait = self._probes.wait(peer, probe.hints, now)
        if wait <= 0:
            self._probes.dialed(peer, probe.hints, now)
            self._out.add(probe)
            return
        self._probes_waiting[peer] = probe
        note = f"tried {self._config.dials} times within a minute where it says it is: it has to wait"
        self._out.record(Record(Kind.CONTROL, peer=peer, reason=Reason.TOO_MANY, note=note))
        self._out.set_timer(wait, ProbeDue(peer))

    @on_command(Connect)
    def connect(self, request: int, command: Connect, now: float) -> None:
        """Keep a link to a peer at the application's request."""
        peer, hints = command.contact.peer, command.contact.hints
        if (why := self.why_foreign(peer)) is not None:
            raise Refused(Reason.NOT_ALLOWED, why)
        if peer in self.blocked:
            raise Refused(Reason.BLOCKED, BLOCKED_HERE)
        if peer == self.ours:
            # There would be no link: what a node sends to itself never leaves it.
            raise Refused(Reason.MALFORMED, _OURSELVES)
        self.hasten(peer)
        self._out.hold(peer, hints, _ASKED)
        self._out.reply(request, Done())

    @on_command(Disconnect)
    def disconnect(self, request: int, command: Disconnect, now: float) -> None:
        """Release a link that the application wanted."""
        self._out.release(command.peer, _ASKED)
        self._out.reply(request, Done())

    @on_command(Block)
    def set_blocked(self, request: int, command: Block, now: float) -> None:
        """Block or unblock a peer; answered once that is written."""
        if command.blocked and command.peer == self.ours:
            raise Refused(Reason.MALFORMED, _OURSELVES)
        if command.blocked:
            self._cells.put(_BLOCKED, command.peer, b"1")
        else:
            self._cells.delete(_BLOCKED, command.peer)
        self.block(command.peer, command.blocked, now)
        self._out.committed.reply(request, Done())

    def block(self, peer: PeerId, blocked: bool, now: float) -> None:
        """Close the link to a peer and accept no other, or accept links again."""
        if not blocked:
            self.blocked.pop(peer, None)
            link = self._links.get(peer)
            if link is not None:
                self._dial_now(peer, link, now)
            return
        self.blocked[peer] = None
        if self.is_up(peer):
            self._out.hang_up(peer, Reason.BLOCKED)

    def sleep(self) -> None:
        """Close every link and dial nobody until `wake`; holds are remembered."""
        self._is_asleep = True
        for peer in self.up:
            self._out.hang_up(peer, Reason.NOT_NEEDED)

    def wake(self, now: float) -> None:
        """Dial every held peer at once."""
        self._is_asleep = False
        for peer, link in self._links.items():
            self._dial_now(peer, link, now)

    # Inputs.

    def link_up(self, event: LinkUp, now: float) -> bool:
        """Note that a link is open; return whether it may stay."""
        objection = self._objection(event.peer, now)
        if objection is not None:
            self._out.hang_up(event.peer, objection)
            return False
        link = self._links.setdefault(event.peer, _Link())
        most = self._config.max_links
        if not link.holds and len(self._links) >= most and len(self.up) >= most:
            self._out.hang_up(event.peer, Reason.TOO_MANY_LINKS)
            return False
        link.up_at, link.dialed, link.dialing, link.needed = now, event.dialed, False, False
        link.failure = None
        link.roles, link.agent = event.hello.roles, event.hello.agent
        link.hints = link.hints or event.hello.listens
        link.offences = (float(self._config.offences), now)
        link.allowance = (self._config.control_rate * 10.0, now)
        self._ping(event.peer, link, now)
        if link.holds:
            self._out.send(event.peer, Needed(True))
        else:
            self._out.set_timer(self._config.idle_timeout, IdleDue(event.peer))
        return True

    def link_down(self, peer: PeerId, reason: Reason, now: float) -> None:
        """Note that a link is gone; dial again if it is needed here."""
        self.clocks.gone(peer)
        if reason in _SHUNNED and self.is_up(peer):
            self._shun(peer, reason, now)
        link = self._links.get(peer)
        if link is not None and link.up_at is not None and now - link.up_at >= LASTING:
            self._backoff.forgive(peer)
            if not link.holds and reason not in _SHUNNED:
                del self._links[peer]
                return
        if link is not None and link.up_at is not None and not link.holds and reason is Reason.NOT_NEEDED:
            # Both ends had what they wanted: a link for one request is no failure, however short it was.
            self._backoff.forgive(peer)
            del self._links[peer]
            return
        self._lose(peer, reason, now)

    def dial_failed(self, peer: PeerId, reason: Reason, now: float) -> None:
        """Note that dialling a peer failed."""
        self._lose(peer, reason, now)

    @on_message(Ping)
    def answer_ping(self, peer: PeerId, message: Ping, now: float) -> None:
        """Answer a linked peer's ping."""
        if peer in self._links:
            self._out.send(peer, Pong(message.number, max(0, int(now * _MICROSECONDS))))

    @on_message(Pong)
    def handle_pong(self, peer: PeerId, message: Pong, now: float) -> None:
        """Measure the round-trip time with a peer's answer to a ping."""
        self._measure_round_trip(peer, message, now)
        if (seconds := self.rtt(peer)) is not None:
            self._out.notify(RoundTripMeasured(peer, seconds))

    def _measure_round_trip(self, peer: PeerId, message: Pong, now: float) -> None:
        link = self._links.get(peer)
        if link is None or link.pinged_at is None or message.number > link.ping:
            return
        link.pings_lost = 0  # late, but alive
        if message.number < link.ping:
            return
        link.rtt = now - link.pinged_at
        link.pinged_at = None
        if message.sent_us is not None:
            self.clocks.heard(peer, message.sent_us, now - link.rtt / 2)
        self._out.set_timer(self._config.ping_period, PingDue(peer))

    @on_message(Needed)
    def note_need(self, peer: PeerId, message: Needed, now: float) -> None:
        """Note whether the other end needs the link."""
        link = self._links.get(peer)
        if link is None:
            return
        link.needed = message.needed
        if not link.needed and not link.holds:
            self._out.set_timer(0.0, IdleDue(peer))

    @on_message(Bye)
    def ignore_farewell(self, peer: PeerId, message: Bye, now: float) -> None:
        """Ignore a farewell: the driver has read the reason, and the link goes down by itself."""

    @on_message(Unsupported)
    def ignore_complaint(self, peer: PeerId, message: Unsupported, now: float) -> None:
        """Ignore that a newer message was not understood: its sender falls back by itself."""

    def rtt(self, peer: PeerId) -> float | None:
        """Return the round-trip time of a link, if it was measured."""
        link = self._links.get(peer)
        return None if link is None else link.rtt

    def spend(self, peer: PeerId, now: float) -> bool:
        """Count a control message of a peer; return whether the peer is within its allowance."""
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

    @on_timer(RedialDue)
    def redial(self, timer: RedialDue, now: float) -> None:
        """Dial a held peer again."""
        link = self._links.get(timer.peer)
        if link is not None and link.is_wanted:
            self._dial(timer.peer, link, now)

    @on_timer(ProbeDue)
    def probe_again(self, timer: ProbeDue, now: float) -> None:
        """Try a peer at the address that it named last."""
        probe = self._probes_waiting.pop(timer.peer, None)
        if probe is not None:
            self._out.add(probe)  # the node hands it to `probe`, like any other

    @on_timer(IdleDue)
    def close_idle(self, timer: IdleDue, now: float) -> None:
        """Close a link that neither end needs."""
        link = self._links.get(timer.peer)
        if link is not None and link.up_at is not None and not link.holds and not link.needed:
            self._out.hang_up(timer.peer, Reason.NOT_NEEDED)

    @on_timer(PingDue)
    def ping_again(self, timer: PingDue, now: float) -> None:
        """Ping a peer, or give up on one that does not answer."""
        link = self._links.get(timer.peer)
        if link is None or link.up_at is None:
            return
        if link.pinged_at is not None:
            link.pings_lost += 1
            if link.pings_lost >= self._config.ping_tries:
                self._out.hang_up(timer.peer, Reason.PING_TIMEOUT)
                return
        self._ping(timer.peer, link, now)

    def status(self) -> tuple[PeerStatus, ...]:
        """Describe every link, open or wanted."""
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

    def unanswered(self) -> tuple[Unanswered, ...]:
        """Describe the peers that do not answer and that no part wants at present."""
        failing = self._backoff.failing()
        return tuple(Unanswered(*each) for each in failing if each[0] not in self._links)

    def _objection(self, peer: PeerId, now: float) -> Reason | None:
        """Return why there may be no link to this peer, whoever dialled."""
        if peer in self.blocked:
            return Reason.BLOCKED
        if self._is_asleep:
            return Reason.NOT_NEEDED
        until, reason = self._shunned.get(peer, (now, Reason.BLOCKED))
        return reason if now < until else None

    def _lose(self, peer: PeerId, reason: Reason, now: float) -> None:
        link = self._links.get(peer)
        if link is None:
            return
        link.up_at, link.dialing, link.failure, link.pinged_at = None, False, reason, None
        link.pings_lost = 0
        config = self._config
        least = config.backoff_most if reason in _SHUNNED else config.backoff_first
        if link.holds or self._backoff.is_tried(peer):
            self._backoff.failed(peer, self._hints(peer, link), now, least, reason)
        if link.holds:
            self._dial(peer, link, now)
        else:
            del self._links[peer]

    def _shun(self, peer: PeerId, reason: Reason, now: float) -> None:
        self._shunned.pop(peer, None)
        self._shunned[peer] = (now + self._config.backoff_most / 2, reason)
        while len(self._shunned) > self._config.max_links or next(iter(self._shunned.values()))[0] < now:
            del self._shunned[next(iter(self._shunned))]

    def _dial_now(self, peer: PeerId, link: _Link, now: float) -> None:
        """Dial at once a held peer that was left alone for a while."""
        if link.is_wanted:
            self._backoff.forgive(peer)
            self._dial(peer, link, now)

    def _dial(self, peer: PeerId, link: _Link, now: float) -> None:
        """Dial a peer, or wait until it may be dialled again."""
        hints = self._hints(peer, link)
        if peer in self.blocked or not hints or self._is_asleep:
            # Without an address the other end has to open the link, as it is told to.
            return
        wait = self._backoff.wait(peer, hints, now)
        if wait > 0:
            self._out.set_timer(wait, RedialDue(peer))
            return
        self._backoff.dialed(peer, hints, now)
        link.dialing = True
        # Not before it is durable that we dialled: a node that ends because its disk is full, and is
        # restarted over and over, would dial anew each time.
        self._out.committed.dial(peer, hints, is_ours=_ASKED in link.holds)

    def _hints(self, peer: PeerId, link: _Link) -> tuple[str, ...]:
        return self.reach(peer, self.located(peer, link.hints))

    def _ping(self, peer: PeerId, link: _Link, now: float) -> None:
        link.ping += 1
        link.pinged_at = now
        self._out.send(peer, Ping(link.ping))
        self._out.set_timer(self._config.ping_timeout, PingDue(peer))


def _refilled(bucket: tuple[float, float], most: float, rate: float, now: float) -> float:
    left, at = bucket
    return min(most, left + max(0.0, now - at) * rate)
