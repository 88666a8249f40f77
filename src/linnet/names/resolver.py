"""The walk along an address, from label to label. It asks no peers itself: it names the record it wants next.

Every step rests on a signed record, and the path keeps its signer. A label costs one record; where a path
ends at a zone instead of a place, the contact of that zone (`+`) is meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, TopicId
from linnet.identity.cards import CardCheck, check_card, check_dates
from linnet.identity.text import Sort, short
from linnet.names.address import Address
from linnet.names.commands import Fault, NotResolved, Resolved, Step, Via, WantsPassword
from linnet.names.derivation import NameKeys, Stretched, derive
from linnet.names.records import CONTACT_LABEL, Block, PlaceRecord, RecordSet, is_early, open_block

Revoked = Callable[[RecordSet], bool]
"""A function that returns whether the signing device of a set was revoked, as far as is known here."""


class Secret(NamedTuple):
    """Whether the first label has a password, and the stretched password once its zone was known."""

    protected: bool = False
    stretched: Stretched | None = None


OPEN = Secret()
"""The secret of an address without a password."""


class Answer(NamedTuple):
    """The blocks that were gathered under the key that a walk wants."""

    blocks: tuple[Block, ...]
    remembered: Block | None
    """The newest right block that we have seen before."""
    answered: bool
    """Whether any peer has answered."""


class Walk:
    """Follows one address. It wants the record under `lookup` until there is an `outcome`."""

    def __init__(
        self,
        address: Address,
        start: Step,
        depth: int,
        secret: Secret = OPEN,
        check: CardCheck = check_card,
        revoked: Revoked = lambda _: False,
    ) -> None:
        self._text = str(address)
        if start.zone is None:
            raise ValueError("an address begins at a zone")
        self._path = [start]
        self._zone = start.zone
        labels = address.labels
        if start.via is Via.OWN and address.name is not None:
            labels = (*labels, address.name)
        self._labels = list(labels) or [CONTACT_LABEL]
        """The labels still to be followed, the last first."""
        self._depth = depth
        self._secret = secret
        self._check = check
        self._revoked = revoked
        self._seen: dict[tuple[AuthorId, str], None] = {}
        self._keys: NameKeys | None = None
        self.outcome: Resolved | NotResolved | WantsPassword | None = None
        self.learned: Block | None = None
        """The right block of the last answer."""
        self.forged: tuple[Block, ...] = ()
        """The blocks of the last answer that the zone did not sign."""
        self.older: tuple[Block, ...] = ()
        """The right blocks of the last answer that are older than one we have seen before."""
        self._want_next()

    @property
    def lookup(self) -> bytes:
        """The lookup key of the record that is wanted now."""
        return self._wanted_keys.lookup

    def handle_answer(self, answer: Answer, now: float) -> None:
        """Go on with the blocks that were found under the wanted key."""
        said = self._judge(answer, now)
        if isinstance(said, RecordSet):
            self._follow(said)

    def _judge(self, answer: Answer, now: float) -> RecordSet | None:
        """Return the newest right set; if there is none, end the walk."""
        known = () if answer.remembered is None else (answer.remembered,)
        right, self.forged = self._open_blocks(dict.fromkeys((*answer.blocks, *known)))
        self.learned, self.older = None, ()
        if not right:
            if self.forged:
                return self._fail(Fault.FORGED, f"{len(self.forged)} found, and the zone signed none of them")
            if not answer.answered:
                return self._fail(Fault.UNANSWERED, "nobody who keeps records could be asked, or answered")
            return self._fail(Fault.UNKNOWN, "nobody who was asked has it")
        # A set signed by a clock that was ahead counts only if there is no other.
        timely = [each for each in right if not is_early(each[0], now)] or right
        block, said = max(timely, key=lambda each: (each[1].version, each[1].device))
        self.learned = block
        older = [each for each in right if each[0] != block] if block == answer.remembered else []
        self.older = tuple(each for each, _ in older)
        if now >= said.until:
            if any(each.until > now for _, each in older):
                return self._fail(Fault.REPLAYED, "what was found is older than what the zone said before")
            return self._fail(Fault.EXPIRED, f"its time was over {now - said.until:.0f} seconds ago")
        if not said.records:
            return self._fail(Fault.REMOVED, "the zone took it back")
        try:
            check_dates(said.card, now)
        except RemoteError as error:
            return self._fail(Fault.FORGED, error.detail)
        return said

    def _open_blocks(
        self, blocks: Iterable[Block]
    ) -> tuple[list[tuple[Block, RecordSet]], tuple[Block, ...]]:
        right: list[tuple[Block, RecordSet]] = []
        forged: list[Block] = []
        for block in blocks:
            try:
                said = open_block(block, self._wanted_keys, self._zone, self._labels[-1], self._check)
            except RemoteError:
                forged.append(block)
                continue
            if self._revoked(said):
                forged.append(block)
            else:
                right.append((block, said))
        return right, tuple(forged)

    def _follow(self, said: RecordSet) -> None:
        label = self._labels.pop()
        place, delegation = said.place, said.delegation
        if not self._labels and place is not None:
            self._add_step(Via.PLACE, label, said, place=place.place)
            self._arrive(place)
            return
        if delegation is None:
            self._labels.append(label)
            self._fail(Fault.NOT_A_ZONE, "it leads to a place, and nothing can follow that")
            return
        self._add_step(Via.DELEGATION, label, said, zone=delegation.zone)
        self._zone = delegation.zone
        if not self._labels:
            self._labels, self._secret = [CONTACT_LABEL], OPEN
        self._want_next()

    def _add_step(
        self,
        via: Via,
        label: str,
        said: RecordSet,
        zone: AuthorId | None = None,
        place: TopicId | None = None,
    ) -> None:
        self._path.append(Step(via, label, self._zone, zone, said.until, said.device, place))

    def _want_next(self) -> None:
        """Want the next record, unless the path runs in circles or too far."""
        label = self._labels[-1]
        if (self._zone, label) in self._seen:
            self._fail(Fault.LOOPING, "the path comes by here a second time")
            return
        if len(self._seen) >= self._depth:
            self._fail(Fault.TOO_DEEP, f"a path leads through {self._depth} records at most")
            return
        self._seen[self._zone, label] = None
        if len(self._labels) > 1 or not self._secret.protected:
            self._keys = derive(self._zone, label)
            return
        stretched = self._secret.stretched
        if stretched is None or not stretched.is_for(self._zone, label):
            self._keys, self.outcome = None, WantsPassword(self._text, self._zone, label)
        else:
            self._keys = derive(self._zone, label, stretched)

    def _arrive(self, place: PlaceRecord) -> None:
        ends = [step.expires for step in self._path if step.expires is not None]
        self._keys = None
        self.outcome = Resolved(self._text, place.place, place.contacts, tuple(self._path), min(ends))

    def _fail(self, fault: Fault, detail: str) -> RecordSet | None:
        """End the walk with a fault; return None, since no set is to be followed."""
        label = self._labels[-1]
        where = f"{label!r} in the zone {short(Sort.PERSON, self._zone)}: {detail}"
        self._keys = None
        self.outcome = NotResolved(self._text, fault, label, self._zone, tuple(self._path), where)
        return None

    @property
    def _wanted_keys(self) -> NameKeys:
        if self._keys is None:
            raise ValueError("this walk is over")
        return self._keys
