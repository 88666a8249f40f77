"""Our own zone: the labels with their records, versions and ends, all kept in the store.

Passwords are not stored; the keys that follow from them are, so that a record can be signed again while the
node runs.
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
from linnet.names.derivation import NameKeys, Stretched, derive
from linnet.names.records import Block, Records, Statement, ZoneRecord, is_early, seal_block

SPACE = "names own"
LONGEST = 365 * 86_400
"""The most seconds that a record may be valid."""
_MS = 1000


class OwnName(Hidden, frozen=True):
    """One label of our zone, as it is stored."""

    label: str
    protected: bool
    keys: NameKeys
    lifetime: int
    renew: bool
    records: tuple[ZoneRecord, ...]
    until: int
    """The last second at which any record that was ever published under this label could be trusted."""
    block: Block

    @property
    def is_removed(self) -> bool:
        """Whether the label was removed."""
        return not self.records


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(OwnName)


class Zone:
    """The part of its person's zone that this device has written."""

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
        """Publish records under a label for `lifetime` seconds; a lifetime of 0 removes the label."""
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
        return self._sign(label, stretched is not None, keys, int(lifetime), renew, records, now)

    def remove(self, text: str, now: float, stretched: Stretched | None = None) -> OwnName:
        """Remove a label: publish a newer set without records, for as long as any older one.

        If this device does not know the label, another device may have published it with any lifetime; the
        removal then lasts as long as any record can.
        """
        label = read_label(text)
        keys = derive(self.key, label, stretched)
        known = self._names.get(keys.lookup)
        if known is not None and known.is_removed:
            raise Refused(Reason.UNKNOWN, f"{label!r} was removed already")
        if known is None and len(self._names) >= self._most:
            raise Refused(Reason.TOO_MANY, f"the zone has {self._most} labels already")
        lifetime = LONGEST if known is None else min(LONGEST, max(1, known.until - int(now)))
        return self._sign(label, stretched is not None, keys, lifetime, False, (), now)

    def renew_due(self, now: float) -> list[OwnName]:
        """Sign renewable records again that have less than half of their time left; return the new ones."""
        due = [
            each
            for each in self._names.values()
            if each.renew
            and (each.block.expires - now < each.lifetime / 2 or is_early(each.block, now))
            and self._is_carded(now)
        ]
        return [
            self._sign(each.label, each.protected, each.keys, each.lifetime, True, each.records, now)
            for each in due
        ]

    def forget_ended(self, now: float) -> list[OwnName]:
        """Drop and return the labels whose records can no longer be trusted anywhere."""
        gone = [each for each in self._names.values() if each.until <= now and not each.renew]
        for each in gone:
            del self._names[each.block.lookup]
            self._cells.delete(SPACE, each.block.lookup)
        return gone

    def names(self) -> tuple[OwnName, ...]:
        """Return all labels, removed ones included, in alphabetical order."""
        return tuple(sorted(self._names.values(), key=lambda each: (each.label, each.protected)))

    def has_label(self, label: str, protected: bool = False) -> bool:
        """Return whether the zone has a label, without or with a password."""
        return any((each.label, each.protected) == (label, protected) for each in self._names.values())

    def _is_carded(self, now: float) -> bool:
        return self._card.not_before <= now < self._card.not_after

    def _sign(
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
        # A version from a clock that was ahead is rejected by right clocks: the numbers begin anew.
        if known is not None and not is_early(known.block, now):
            version, until = max(version, known.block.version + 1), max(until, known.until)
        expires = int(now) + lifetime
        block = seal_block(
            keys, self._key, self._card, Statement(label, version, expires, records), self._entropy
        )
        own = OwnName(label, protected, keys, lifetime, renew, records, until, block)
        self._names[block.lookup] = own
        self._cells.put(SPACE, block.lookup, _encode(own))
        return own


def _read(raw: bytes) -> OwnName:
    try:
        return _decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        # Only the type of the error: its message could reveal parts of the secret content.
        raise StoreError(f"a label of our zone cannot be read: {type(error).__name__}") from None
