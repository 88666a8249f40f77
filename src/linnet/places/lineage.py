"""Terms that are not known here: asked for, and told to whoever asks (decision 0018).

Fragments flow from the voice, and their numbers tell what is missing. A term that others opened while we
were away begins below the numbers that we have, so nothing would be missing: it has to be asked for. Whoever
asks names the openings of its last terms, whoever answers tells those after the last that both know. Openings
are signed, and each decides for itself which of them count, so it does not matter who tells them.
"""

from __future__ import annotations

from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId
from linnet.event.event import Unverified
from linnet.identity.cards import Card
from linnet.machine.outbox import Outbox
from linnet.places.messages import TERMS, AskTerms, DeedIs, TermsAre
from linnet.places.multicast.fragmentation import FIRST_TERM
from linnet.places.parts import Parts
from linnet.places.taking import Taking
from linnet.places.visiting import refused_record

PAUSE = 1.0
"""Seconds between two questions to the same peer."""
ANSWER_BYTES = 256 * 1024
"""Most bytes of one answer; openings are small, unless somebody wants them not to be."""
ASKED = 256
"""Peers that are remembered as asked."""


class Lineage:
    """Questions and answers about the terms of one place."""

    def __init__(self, parts: Parts, taking: Taking, out: Outbox) -> None:
        self._parts = parts
        self._taking = taking
        self._out = out
        self._asked: dict[PeerId, float] = {}
        """Whom we asked, and from when on we may again."""

    def ask_terms(self, peer: PeerId, now: float) -> None:
        """Ask somebody who seems to know more, unless it was asked just now."""
        if self._asked.get(peer, 0.0) > now or peer not in self._parts.context.links:
            return
        self._asked.pop(peer, None)
        self._asked[peer] = now + PAUSE
        if len(self._asked) > ASKED:
            del self._asked[next(iter(self._asked))]
        self._out.send(peer, self._question())

    def put_back(self, seconds: float) -> None:
        """The clock was put back by so many seconds: what is to come is as far away as before."""
        for peer in self._asked:
            self._asked[peer] -= seconds

    def answer_question(self, peer: PeerId, ask: AskTerms, now: float) -> None:
        """Tell a peer the terms that it does not know; ask in turn if it knows of one that we do not."""
        parts = self._parts
        after = self._common(ask)
        unknown = [each.opening for each in parts.terms.line if each.opening.term > after]
        units: list[Unverified] = []
        cards: dict[bytes, Card] = {}
        size = 0
        for opening in unknown[:TERMS]:
            unit = parts.unit_of(opening.event)
            size += 0 if unit is None else len(unit.tails[0])
            if unit is None or (units and size > ANSWER_BYTES):
                break
            units.append(unit)
            card = parts.context.cards.find(unit.author, unit.device)
            if card is not None:
                cards[unit.author + unit.device] = card
        told = TermsAre(parts.id, tuple(units), tuple(cards.values()), len(units) == len(unknown))
        if ask.known < parts.deed.version:
            self._out.committed.send(peer, DeedIs(parts.deed))
        self._out.committed.send(peer, told)
        if ask.line and not parts.terms.knows(ask.term, ask.line[0]):
            self.ask_terms(peer, now)

    def handle_terms(self, peer: PeerId, terms: TermsAre, now: float) -> bool:
        """Take in terms that a peer tells; whether the line is another now."""
        parts = self._parts
        before = parts.opened_by
        try:
            for card in terms.cards:
                parts.context.cards.learn(card)
        except RemoteError as error:
            self._out.record(refused_record(parts, peer, error))
            return False
        for unit in terms.units:
            self._taking.take(unit, None, peer, 1, 0, now)
        if not terms.done and parts.opened_by != before:
            self._asked.pop(peer, None)
            self.ask_terms(peer, now)
        return parts.opened_by != before

    def _question(self) -> AskTerms:
        parts = self._parts
        line = [each.opening.event for each in parts.terms.line[-TERMS:]]
        base = parts.terms.base
        first = FIRST_TERM if base is None else base.term
        return AskTerms(parts.id, parts.deed.version, first, parts.term, tuple(reversed(line)))

    def _common(self, ask: AskTerms) -> int:
        """The last term that both have the same opening of; else the last one that is of no use to it."""
        theirs = dict.fromkeys(ask.line)
        common = [each.opening.term for each in self._parts.terms.line if each.opening.event in theirs]
        return max(common, default=ask.first - 1)
