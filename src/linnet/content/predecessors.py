"""Who was the rendezvous before this node, and may have subscriptions that this node has not.

A node that becomes the rendezvous is *young* until a period is over, in which all subscriptions are told
again (Agostinho 2021, section 3.7: the age rule). Until then it sends each event to its predecessor as well,
as if that were a route which wants everything. If the predecessor does not answer, those are asked that keep
its filters; and if nobody has them, it counts as a branch that was missed: the publisher is told.
"""

from __future__ import annotations

from linnet.content.claims import Claims
from linnet.content.config import ContentConfig
from linnet.content.copies import Copies
from linnet.content.filter_table import FilterTable
from linnet.content.parts import is_part
from linnet.core.ids import Contact, PeerId

_MOST = 4
"""Predecessors of one attribute."""


class Predecessors:
    """Who came before, by attribute."""

    def __init__(
        self, ours: PeerId, config: ContentConfig, claims: Claims, copies: Copies, table: FilterTable
    ) -> None:
        self._ours = ours
        self._config = config
        self._claims = claims
        self._copies = copies
        self._table = table
        self._since: dict[str, float] = {}
        self._known: dict[str, dict[PeerId, Contact]] = {}

    def is_young(self, attribute: str, now: float) -> bool:
        """Whether subscriptions may be known to others alone."""
        return attribute in self._since and now < self._since[attribute] + self._config.refresh

    def begin(self, attribute: str, now: float) -> None:
        """Note who came before, as this node is the rendezvous of an attribute now and was not."""
        self._since[attribute] = now
        known = self._known[attribute] = {}
        claimant = self._claims.claimant(attribute)
        for contact in [claimant] if claimant is not None else []:
            known[contact.peer] = contact
        for peer in self._copies.rendezvous(attribute)[:_MOST]:
            known.setdefault(peer, Contact(peer))
        known.pop(self._ours, None)

    def forget(self, attribute: str) -> None:
        """Forget who came before, as another is the rendezvous now."""
        self._since.pop(attribute, None)
        self._known.pop(attribute, None)

    def learn(self, attribute: str, contact: Contact, now: float) -> bool:
        """Somebody names a predecessor; whether that is of any use."""
        if not self.is_young(attribute, now) or contact.peer == self._ours:
            return False
        known = self._known[attribute]
        if contact.peer not in known and len(known) >= _MOST:
            return False
        known[contact.peer] = contact
        return True

    def of(self, attribute: str, now: float) -> list[Contact]:
        """Who has to be sent an event beside those who asked here; who asked is a route like others."""
        if is_part(attribute) or not self.is_young(attribute, now):
            return []
        routes = self._table.routes(attribute)
        return [contact for peer, contact in self._known[attribute].items() if peer not in routes]

    def tidy(self, now: float) -> None:
        """Forget what no longer counts."""
        for attribute in [name for name in self._since if not self.is_young(name, now)]:
            self.forget(attribute)
