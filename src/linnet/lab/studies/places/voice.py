"""A host who speaks to nobody: the shipped voice, whose fragments are kept in their order."""

from __future__ import annotations

from collections.abc import Sequence

from linnet.core.ids import AuthorId
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.context import Context
from linnet.event.event import Verified
from linnet.event.signing import verify_unit
from linnet.identity.cards import Card
from linnet.identity.keys import SigningKey
from linnet.lab.errors import CheckFailed
from linnet.machine.outbox import Outbox
from linnet.peer.config import Identity
from linnet.places.channel.fragment_store import New
from linnet.places.channel.packet import Modifier
from linnet.places.channel.reassembly import Began
from linnet.places.config import PlacesConfig
from linnet.places.deed import Policy, sign_deed
from linnet.places.fragment_writer import FragmentWriter
from linnet.places.multicast.fragmentation import Head
from linnet.places.place_setup import Parts
from linnet.sim.clock import START
from linnet.sim.seeded_random import SeededEntropy, named_luck, seeded_identity
from linnet.store.memory import MemoryStore

Spoken = tuple[Verified, Head]


def host_of(seed: int) -> Identity:
    """The host of all places of a study: who reads the log needs one card."""
    return seeded_identity(seed, "places/host", START)


def card_of(seed: int) -> Card:
    """Its card."""
    return host_of(seed).card


def key_of(seed: int, place: int) -> SigningKey:
    """The key of a place; its public half is the topic."""
    return SigningKey.generate(SeededEntropy(seed, f"places/{place}"))


class Voice:
    """The host of one place, while it speaks."""

    def __init__(self, seed: int, place: int, config: PlacesConfig) -> None:
        host = host_of(seed)
        deed = sign_deed(key_of(seed, place), 1, Policy.PUBLIC, host.author)
        luck = named_luck(seed, f"places/{place}")
        context = Context(host.device, host.card, MemoryStore(), DeliveryConfig(), luck, verify_unit)
        self.parts = Parts(deed, context, config, Outbox())
        self._speaking = FragmentWriter(self.parts)
        self._speaking.open_term(START)
        self.said: list[Spoken] = []
        """Every fragment, in the order in which it left."""

    def announce(
        self,
        method: str,
        modifiers: Sequence[Modifier] = (),
        body: bytes = b"",
        *,
        reset: bool = False,
        more: bool = False,
    ) -> int:
        """Say something to all; the number of the message."""
        message, spoken = self._speaking.announce(method, modifiers, body, reset, more, START)
        self._keep(spoken)
        return message

    def more(self, message: int, body: bytes, more: bool) -> None:
        """Go on with a message."""
        self._keep(self._speaking.more(message, body, more, START))

    def joined(self, nym: AuthorId, since: int | None = None) -> None:
        """Somebody came in."""
        self._keep(self._speaking.joined(nym, since, START)[1])

    def parted(self, nym: AuthorId) -> None:
        """Somebody left."""
        self._keep(self._speaking.parted(nym, START)[1])

    def keep_alive(self) -> None:
        """Nothing was said."""
        self._keep(self._speaking.keep_alive(START))

    def _keep(self, spoken: Sequence[Spoken]) -> None:
        """As the voice itself takes in what it says: the next message rests on it."""
        parts = self.parts
        for verified, head in spoken:
            stored = parts.fragments.store(verified, head, START)
            if not isinstance(stored, New):
                raise CheckFailed(f"the voice cannot take its own fragment {head.fragment}: {stored}")
            if head.change is not None:
                parts.membership.store(head.change, head.message, head.generation)
            for step in parts.reassembly.stored(stored.row):
                if isinstance(step, Began) and step.header.delta is not None:
                    parts.order.offered(step.message, step.header.delta, step.modifiers, step.header.hash)
            self.said.append((verified, head))
