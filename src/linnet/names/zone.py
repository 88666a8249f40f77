"""Our own zone: what it says under which label, in which version, until when. Written down, labels and all.

Passwords are not kept; what follows from them is, so that a record can be signed again while the node runs.
"""

from __future__ import annotations

import msgspec

from linnet.core.errors import Refused, StoreError
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.groups.primitives import Hidden
from linnet.identity.cards import Card
from linnet.identity.keys import SigningKey
from linnet.names.address import read_label
from linnet.names.block import Block, Saying, close_block, is_early
from linnet.names.derivation import NameKeys, Stretched, derive
from linnet.names.records import Records, ZoneRecord

SPACE = "names own"
LONGEST = 365 * 86_400
"""Seconds that a record may be good for."""
_MS = 1000


class OwnName(Hidden, frozen=True):
    """One label of our zone, as it is written down."""

    label: str
    protected: bool
    keys: NameKeys
    lifetime: int
    renew: bool
    records: tuple[ZoneRecord, ...]
    until: int
    """The last second at which anything that was ever said under this label could still be believed."""
    block: Block

    @property
    def is_removed(self) -> bool:
        """Whether it was taken back."""
        return not self.records


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(OwnName)


class Zone:
    """The zone of this device's person, as far as this device has written it."""

    def __init__(self, key: SigningKey, card: Card, cells: Cells, entropy: Entropy, most: int) -> None:
        self._key = key
        self._card = card
        self._cells = cells
        self._entropy = entropy
        self._most = most
        self.key = card.person
        self._names: dict[bytes, OwnName] = {lookup: _read(raw) for lookup, raw in cells.scan(SPACE)}

    def publish(
        self,
        text: str,
        records: Records,
        lifetime: float,
        now: float,
        renew: bool = True,
        stretched: Stretched | None = None,
    ) -> OwnName:
        """Say this under a label, for so many seconds; for none: take back what was said."""
        label = read_label(text)
        if not 0 <= lifetime <= LONGEST:
            raise Refused(Reason.TOO_LARGE, f"a record is good for 0 to {LONGEST} seconds, not {lifetime:g}")
        if lifetime == 0 or not records:
            return self.remove(label, now, stretched)
        if lifetime < 1:
            raise Refused(Reason.NOT_ALLOWED, "a record is good for a second at least")
        keys = derive(self.key, label, stretched)
        if keys.lookup not in self._names and len(self._names) >= self._most:
            raise Refused(Reason.TOO_MANY, f"the zone has {self._most} labels already")
        return self._say(label, stretched is not None, keys, int(lifetime), renew, records, now)

    def remove(self, text: str, now: float, stretched: Stretched | None = None) -> OwnName:
        """Take back what was said under a label: a newer set without records, for as long as any older one.

        Of a label that this device knows nothing of nobody knows how long another device said it for; then
        the removal lasts as long as any record can.
        """
        label = read_label(text)
        keys = derive(self.key, label, stretched)
        known = self._names.get(keys.lookup)
        if known is not None and known.is_removed:
            raise Refused(Reason.UNKNOWN, f"{label!r} was removed already")
        if known is None and len(self._names) >= self._most:
            raise Refused(Reason.TOO_MANY, f"the zone has {self._most} labels already")
        lifetime = LONGEST if known is None else min(LONGEST, max(1, known.until - int(now)))
        return self._say(label, stretched is not None, keys, lifetime, False, (), now)

    def renewals(self, now: float) -> list[OwnName]:
        """Sign again what is to go on and has less than half of its time left; the new versions."""
        due = [
            each
            for each in self._names.values()
            if each.renew
            and (each.block.expires - now < each.lifetime / 2 or is_early(each.block, now))
            and self._is_carded(now)
        ]
        return [
            self._say(each.label, each.protected, each.keys, each.lifetime, True, each.records, now)
            for each in due
        ]

    def forget(self, now: float) -> list[OwnName]:
        """Drop labels of which nothing can be believed any more."""
        gone = [each for each in self._names.values() if each.until <= now and not each.renew]
        for each in gone:
            del self._names[each.block.lookup]
            self._cells.delete(SPACE, each.block.lookup)
        return gone

    def names(self) -> tuple[OwnName, ...]:
        """All labels, removed ones included, in the order of the alphabet."""
        return tuple(sorted(self._names.values(), key=lambda each: (each.label, each.protected)))

    def says(self, label: str, protected: bool = False) -> bool:
        """Whether the zone says anything under a label, openly or behind a password."""
        return any((each.label, each.protected) == (label, protected) for each in self._names.values())

    def _is_carded(self, now: float) -> bool:
        return self._card.not_before <= now < self._card.not_after

    def _say(
        self,
        label: str,
        protected: bool,
        keys: NameKeys,
        lifetime: int,
        renew: bool,
        records: Records,
        now: float,
    ) -> OwnName:
        if not self._is_carded(now):
            raise Refused(Reason.CARD_EXPIRED, "this device's card is not good now: nobody would believe it")
        known = self._names.get(keys.lookup)
        version, until = int(now * _MS), int(now) + lifetime
        # One from a clock that was ahead is believed by nobody whose clock is right: numbers begin anew.
        if known is not None and not is_early(known.block, now):
            version, until = max(version, known.block.version + 1), max(until, known.until)
        expires = int(now) + lifetime
        block = close_block(
            keys, self._key, self._card, Saying(label, version, expires, records), self._entropy
        )
        own = OwnName(label, protected, keys, lifetime, renew, records, until, block)
        self._names[block.lookup] = own
        self._cells.put(SPACE, block.lookup, _encode(own))
        return own


def _read(raw: bytes) -> OwnName:
    try:
        return _decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        # The message alone: what could not be read is a secret.
        raise StoreError(f"a label of our zone cannot be read: {type(error).__name__}") from None
