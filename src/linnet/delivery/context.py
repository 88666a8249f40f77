"""What every way to subscribe shares at a node: who it is, its store, its cards, its open links."""

from __future__ import annotations

from random import Random

from linnet.core.ids import AuthorId, DeviceId, PeerId
from linnet.core.luck import Entropy
from linnet.core.stores import Store
from linnet.delivery.cards import CardBook
from linnet.delivery.config import DeliveryConfig
from linnet.event.signing import Verifier
from linnet.identity.cards import Card, CardCheck, check_card
from linnet.identity.keys import SigningKey


class Context:
    """Given to every topic of one node; holds no state of any one of them."""

    def __init__(
        self,
        key: SigningKey,
        card: Card,
        store: Store,
        config: DeliveryConfig,
        rng: Random,
        verifier: Verifier,
        card_check: CardCheck = check_card,
        entropy: Entropy | None = None,
    ) -> None:
        self.key = key
        self.card = card
        self.store = store
        self.config = config
        self.rng = rng
        self.entropy: Entropy = entropy or rng.randbytes
        """Secret bytes. In the field `rng` is the system's own, so its bytes are as good as secrets."""
        self.verify = verifier
        self.card_check = card_check
        self.cards = CardBook(store.cells, card_check)
        self.cards.learn(card, own=True)
        self.peer = PeerId(key.public)
        self.links: dict[PeerId, None] = {self.peer: None}
        """Peers that can be told something now: those to which a link is open, and ourselves."""
        self.author: AuthorId = card.person
        self.device: DeviceId = card.device
