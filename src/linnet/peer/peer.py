"""The node machine: all protocols of a node, composed. The drivers run this class, unchanged.

Inputs are routed to the parts, and what they put into the outbox is taken. Requests to the node itself, such
as `Hold` or `Blame`, are acted on at the end of the input. Messages that a node sends to itself are looped
back, so that it may be its own tracker and storage.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from random import Random
from typing import TypeGuard, assert_never

from linnet.content.part import NodeFinder
from linnet.core.effects import AfterCommit, Blame, Hold, Probe, Release, Send
from linnet.core.hello import WIRE_VERSION, Hello
from linnet.core.ids import PeerId
from linnet.core.inputs import Asked, DialFailed, LinkDown, LinkUp, Received, TimerFired
from linnet.core.limits import FRAME_BYTES
from linnet.core.luck import Entropy
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.core.spaces import words_for
from linnet.core.stores import Store
from linnet.delivery.messages import Data
from linnet.event.signing import Verifier, verify_unit
from linnet.identity.cards import CardCheck, check_card
from linnet.machine.commands import Declined, Done
from linnet.machine.outbox import Effect as Asking
from linnet.machine.outbox import Outbox
from linnet.machine.protocol import Vocabulary
from linnet.overlay.notices import OwnLinkUp
from linnet.peer.config import Identity, PeerConfig
from linnet.peer.interface import AnyCommand, Effect, Examine, Input, Start, Stop
from linnet.peer.links import Links
from linnet.peer.messages import vocabulary_with
from linnet.peer.parts import Absent, Parts
from linnet.streams.repair import LogDamaged
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
        make_finder: Callable[[Outbox], NodeFinder] | None = None,
    ) -> None:
        """`make_finder` makes a part that finds nodes in place of Kademlia."""
        self._config = config
        self._ours = identity.peer
        self._parts = parts = Parts(config, identity, store, rng, verifier, card_check, entropy, make_finder)
        self._links = parts.links
        self._router = parts.router
        self._out = parts.out
        self._absent = Absent(parts)
        self._started_at = 0.0
        vocabulary = vocabulary_with(config.protocols)
        self._hello = Hello(
            WIRE_VERSION,
            WIRE_VERSION,
            self._spoken(vocabulary),
            self.roles,
            FRAME_BYTES,
            config.listens,
            config.agent,
        )
        self._outgoing = Outgoing(self._hello, vocabulary, parts.links, parts.edge.check_hold, parts.out)

    @property
    def hello(self) -> Hello:
        """The first message on each link."""
        return self._hello

    @property
    def parts(self) -> Parts:
        """The parts of this node, for inspection."""
        return self._parts

    def _spoken(self, vocabulary: Vocabulary) -> dict[str, int]:
        """Return the protocols in which this node takes part, with their versions."""
        heard = self._router.table.messages
        absent = [name for name, kinds in vocabulary.optional.items() if heard.keys().isdisjoint(kinds)]
        return {name: version for name, version in vocabulary.versions.items() if name not in absent}

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles that this node offers."""
        offered = {
            "tracker": self._config.is_tracker,
            "storage": bool(self._config.storage),
            "relay": self._config.relay is not None,
            "proxy": self._config.proxy is not None,
        }
        return tuple(role for role, is_offered in offered.items() if is_offered)

    def handle(self, event: Input, now: float) -> list[Effect]:
        """Apply one input; the caller performs the effects, in order. An input that fails has no effect."""
        out = self._out
        try:
            if isinstance(event, Received) and type(event.message) is Data and event.peer != self._ours:
                # This is by far the most frequent input, and nearly all of its effects go to the driver.
                self._receive(event.peer, event.message, now)
                asked = out.take()
                return asked if self._outgoing.is_plain(asked) else self._outgoing.resolve(asked, now)
            return self._handle(event, now)
        except BaseException:
            out.clear()
            raise

    def _handle(self, event: Input, now: float) -> list[Effect]:
        out, outgoing = self._out, self._outgoing
        self._apply(event, now)
        effects = outgoing.resolve(out.take(), now)
        self._tell_damage(now)
        effects += outgoing.resolve(out.take(), now)
        while outgoing.looped:
            self._apply(outgoing.looped.popleft(), now)
            effects += outgoing.resolve(out.take(), now)
        return effects

    def _tell_damage(self, now: float) -> None:
        """Report the damage found in our store while an input was handled."""
        store = self._parts.context.store
        if news := store.log.take_damage():
            self._out.notify(LogDamaged(tuple(news)))
            self._router.pass_on_notices(now)
        for damage in store.cells.take_damage():
            note = f"a value of our {words_for(damage.space)}"
            self._out.record(Record(Kind.DROPPED, reason=Reason.DAMAGED, note=note))

    def _apply(self, event: Input, now: float) -> None:
        match event:
            case Received(peer, message):
                self._receive(peer, message, now)
            case TimerFired(timer):
                self._router.timer(timer, now)
            case LinkUp():
                self._open_link(event, now)
            case LinkDown(peer, reason):
                self._outgoing.handle_link_down(peer)
                self._links.link_down(peer, reason, now)
                self._router.input(event, now)
                self._parts.context.origins.note_gone(peer)
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
            self._router.topic_message(peer, message, message.unit.topic, now)
            return
        if not all(self._links.spend(peer, now) for _ in range(message.cost)):
            note = "more messages than allowed"
            self._out.record(Record(Kind.REJECTED, peer=peer, reason=Reason.FLOODING, note=note))
            self._out.hang_up(peer, Reason.FLOODING)
            return
        if (reject := self._absent.messages.get(type(message))) is not None:
            reject(self._absent, peer, message)
        else:
            self._router.message(peer, message, now)

    def _open_link(self, event: LinkUp, now: float) -> None:
        if event.peer == self._ours:
            self._out.notify(OwnLinkUp(event))
            self._router.pass_on_notices(now)
        elif self._links.link_up(event, now):
            self._parts.context.origins.note(event.peer, event.network)
            self._outgoing.handle_link_up(event.peer, event.hello.protocols)
            self._router.input(event, now)

    def _ask(self, request: int, command: AnyCommand, now: float) -> None:
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
            out.reply(request, self._parts.status(self._config, self.roles, self._started_at))
        elif (refusal := self._absent.commands.get(type(command))) is not None:
            out.reply(request, Declined(Reason.UNSUPPORTED, refusal))
        else:
            self._router.command(request, command, now)


_FOR_THE_NODE = frozenset({Hold, Release, Blame, Probe})


class Outgoing:
    """The way out of a node machine: acts on requests to the node itself and passes effects to the driver."""

    def __init__(
        self,
        hello: Hello,
        vocabulary: Vocabulary,
        links: Links,
        check_hold: Callable[[Hold], bool],
        out: Outbox,
    ) -> None:
        """`check_hold` says whether a request for a link is granted."""
        self._out = out
        self._ours = links.ours
        self._hello = hello
        self._protocol_of = vocabulary.protocol_of
        self._needed = tuple(name for name in vocabulary.versions if name not in vocabulary.optional)
        """Protocols whose parts may send to any peer; messages that a peer does not speak are held back."""
        self._links = links
        self._check_hold = check_hold
        self.looped: deque[Input] = deque()
        """Messages that this node has sent to itself."""
        self._lacking: dict[PeerId, tuple[str, ...]] = {}
        """Peers that do not speak all of our protocols, and the ones that they lack."""

    def handle_link_up(self, peer: PeerId, spoken: Iterable[str]) -> None:
        """Note which protocols a peer speaks."""
        lacking = tuple(name for name in self._needed if name not in spoken)
        if lacking:
            self._lacking[peer] = lacking

    def handle_link_down(self, peer: PeerId) -> None:
        """Forget which protocols a peer speaks."""
        self._lacking.pop(peer, None)

    def is_plain(self, asked: list[Asking]) -> TypeGuard[list[Effect]]:
        """Return whether all effects go to the driver unchanged."""
        return not self._lacking and _FOR_THE_NODE.isdisjoint(map(type, asked))

    def resolve(self, asked: Iterable[Asking], now: float) -> list[Effect]:
        """Act on requests to the node itself, loop back our own messages; return the driver's effects."""
        effects: list[Effect] = []
        ours = self._ours
        for effect in asked:
            # By type first: most effects go to the driver.
            if isinstance(effect, Send):
                if effect.peer == ours:
                    self.looped.append(Received(ours, effect.message))
                elif self._lacking:
                    effects.append(self._spoken(effect))
                else:
                    effects.append(effect)
            elif isinstance(effect, Hold | Release | Blame | Probe):
                self._act(effect, now)
                effects += self._asked_by_links()
            elif isinstance(effect, AfterCommit) and self._lacking:
                promises = (self._spoken(it) if isinstance(it, Send) else it for it in effect.effects)
                effects.append(AfterCommit(tuple(promises)))
            else:
                effects.append(effect)
        return effects

    def _asked_by_links(self) -> list[Effect]:
        """Take the effects of the links; links ask nothing of the node itself."""
        return [each for each in self._out.take() if not isinstance(each, Hold | Release | Blame)]

    def _act(self, effect: Hold | Release | Blame | Probe, now: float) -> None:
        match effect:
            case Hold():
                self._hold(effect, now)
            case Release():
                self._links.release(effect)
            case Blame():
                self._links.blame(effect, now)
            case Probe():
                self._links.probe(effect, now)
            case _:
                assert_never(effect)

    def _hold(self, hold: Hold, now: float) -> None:
        if hold.peer == self._ours:
            self.looped.append(LinkUp(self._ours, self._hello, True, None))
            return
        if self._check_hold(hold):
            self._links.hold(hold, now)

    def _spoken(self, send: Send[Message]) -> Send[Message] | Record:
        """Return the message, or a record if the peer does not speak its protocol."""
        if self._protocol_of[type(send.message)] not in self._lacking.get(send.peer, ()):
            return send
        note = f"{type(send.message).__name__}: the peer does not speak this protocol"
        return Record(Kind.DROPPED, peer=send.peer, reason=Reason.UNSUPPORTED, note=note)
