"""The node machine: every protocol of a node, composed. The drivers drive this class, unchanged.

Inputs are routed to the parts, and what they put into the outbox is taken. What a part asks of the node
itself, such as `Hold` or `Blame`, is acted on at the end of the input. What it says to this same node as if
to another is looped back, so that a node may be its own tracker and storage.
"""

from __future__ import annotations

from random import Random

from linnet.content.part import PROTOCOLS as CONTENT
from linnet.content.part import Search
from linnet.core.hello import WIRE_VERSION, Hello
from linnet.core.ids import PeerId
from linnet.core.inputs import Asked, DialFailed, LinkDown, LinkUp, Received, TimerFired
from linnet.core.limits import FRAME_BYTES
from linnet.core.luck import Entropy
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.core.stores import Store
from linnet.delivery.commands import Declined, Done
from linnet.delivery.messages import Data
from linnet.event.signing import Verifier, verify_unit
from linnet.identity.cards import CardCheck, check_card
from linnet.overlay.kademlia.kademlia import PROTOCOL as KADEMLIA
from linnet.overlay.notices import OwnLinkUp
from linnet.peer.absent import Absent
from linnet.peer.config import Identity, PeerConfig
from linnet.peer.interface import Command, Effect, Examine, Input, Start, Stop
from linnet.peer.messages import PROTOCOLS
from linnet.peer.outgoing import Outgoing
from linnet.peer.parts import Parts
from linnet.peer.status import node_status
from linnet.trace.records import Kind, Record


class Peer:
    """One node of the network: peer, tracker and storage, as its configuration says."""

    def __init__(
        self,
        config: PeerConfig,
        identity: Identity,
        store: Store,
        rng: Random,
        verifier: Verifier = verify_unit,
        card_check: CardCheck = check_card,
        entropy: Entropy | None = None,
        search: Search | None = None,
    ) -> None:
        self._config = config
        self._ours = identity.peer
        self._parts = parts = Parts(config, identity, store, rng, verifier, card_check, entropy, search)
        self._links = parts.links
        self._router = parts.router
        self._out = parts.out
        self._absent = Absent(parts)
        self._started_at = 0.0
        self._hello = Hello(
            WIRE_VERSION,
            WIRE_VERSION,
            self._spoken(),
            self.roles,
            FRAME_BYTES,
            config.listens,
            config.agent,
        )
        self._outgoing = Outgoing(self._ours, self._hello, parts.links, parts.edge, parts.out)

    @property
    def hello(self) -> Hello:
        """What to say first on each link."""
        return self._hello

    @property
    def parts(self) -> Parts:
        """The parts of this node, for whoever looks into it."""
        return self._parts

    def _spoken(self) -> dict[str, int]:
        """Protocols of this node: those that it does."""
        absent = [KADEMLIA] if self._parts.kademlia is None else []
        absent += CONTENT if self._parts.content is None else ()
        return {name: version for name, version in PROTOCOLS.items() if name not in absent}

    @property
    def roles(self) -> tuple[str, ...]:
        """What this node offers."""
        offered = {
            "tracker": self._config.is_tracker,
            "storage": bool(self._config.storage),
            "relay": self._config.relay is not None,
            "proxy": self._config.proxy is not None,
        }
        return tuple(role for role, is_offered in offered.items() if is_offered)

    def handle(self, event: Input, now: float) -> list[Effect]:
        """Apply one input; the caller performs the effects, in order. An input that fails has no effect."""
        try:
            return self._handle(event, now)
        except BaseException:
            self._out.clear()
            raise

    def _handle(self, event: Input, now: float) -> list[Effect]:
        out, outgoing = self._out, self._outgoing
        if isinstance(event, Received) and type(event.message) is Data and event.peer != self._ours:
            # By far the most frequent input, and nearly all that it brings about is for the driver.
            self._receive(event.peer, event.message, now)
            asked = out.take()
            return asked if outgoing.is_plain(asked) else outgoing.resolve(asked, now)
        self._apply(event, now)
        effects = outgoing.resolve(out.take(), now)
        self._router.close_input(now)
        effects += outgoing.resolve(out.take(), now)
        while outgoing.looped:
            self._apply(outgoing.looped.popleft(), now)
            effects += outgoing.resolve(out.take(), now)
        return effects

    def _apply(self, event: Input, now: float) -> None:
        match event:
            case Received(peer, message):
                self._receive(peer, message, now)
            case TimerFired(timer):
                self._router.timer(timer, now)
            case LinkUp():
                self._open_link(event, now)
            case LinkDown(peer, reason):
                self._outgoing.link_down(peer)
                self._links.link_down(peer, reason, now)
                self._router.input(event, now)
            case DialFailed(peer, reason):
                self._router.input(event, now)
                self._links.dial_failed(peer, reason, now)
            case Asked(request, command):
                self._router.input(event, now)
                self._ask(request, command, now)
            case _:
                self._router.input(event, now)

    def _receive(self, peer: PeerId, message: Message, now: float) -> None:
        if type(message) is Data:
            self._links.clocks.heard(peer, message.sent_us, now)
        elif not all(self._links.spend(peer, now) for _ in range(message.cost)):
            note = "more messages than allowed"
            self._out.record(Record(Kind.REJECTED, peer=peer, reason=Reason.FLOODING, note=note))
            self._out.hang_up(peer, Reason.FLOODING)
            return
        if (reject := self._absent.messages.get(type(message))) is not None:
            reject(peer, message)
        else:
            self._router.message(peer, message, now)

    def _open_link(self, event: LinkUp, now: float) -> None:
        if event.peer == self._ours:
            self._out.notify(OwnLinkUp(event))
            self._router.pass_on_notices(now)
        elif self._links.link_up(event, now):
            self._outgoing.link_up(event.peer, event.hello.protocols)
            self._router.input(event, now)

    def _ask(self, request: int, command: Command, now: float) -> None:
        out = self._out
        if isinstance(command, Start):
            self._started_at = now
            out.record(Record(Kind.ONLINE))
            self._parts.start(now)
            out.reply(request, Done())
        elif isinstance(command, Stop):
            up = self._links.up
            self._parts.stop(now)
            for peer in up:
                out.hang_up(peer, Reason.SHUTDOWN)
            out.record(Record(Kind.OFFLINE))
            out.reply(request, Done())
        elif isinstance(command, Examine):
            out.reply(request, node_status(self._parts, self._config, self.roles, self._started_at))
        elif (refusal := self._absent.commands.get(type(command))) is not None:
            out.reply(request, Declined(Reason.UNSUPPORTED, refusal))
        else:
            self._router.command(request, command, now)
