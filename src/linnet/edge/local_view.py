"""Everybody on one local network, as far as their announcements were heard lately.

What is heard is refused, not believed: wrong bytes, wrong signatures, too much of anything. A
signature is checked once for each key and nonce.
"""

from __future__ import annotations

from collections.abc import Callable

from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, PeerId
from linnet.core.reasons import Reason
from linnet.edge.announcement import Announcement, check_announcement, read_announcement
from linnet.edge.config import PresenceConfig
from linnet.edge.hints import lan_hint
from linnet.edge.rates import Bucket, SourceRates

_PLACES = 4
"""Addresses of one node that are kept: it may speak over IPv4 and IPv6, and over two interfaces."""


class Entry:
    """One node of the network, under the key that it announces."""

    __slots__ = (
        "datagram",
        "due",
        "failures",
        "heard_at",
        "is_doubted",
        "lan",
        "meeting",
        "nonce",
        "peer",
        "places",
        "port",
    )

    def __init__(self, lan: bytes, now: float) -> None:
        self.lan = lan
        self.port = 0
        self.nonce = b""
        self.datagram = b""
        """Its last announcement, whose signature was right."""
        self.heard_at = now
        self.places: dict[str, float] = {}
        """Addresses that it announced itself from, with when it last did."""
        self.peer: PeerId | None = None
        """The device, once met."""
        self.meeting = False
        self.failures = 0
        self.due = now
        """When it is to be met."""
        self.is_doubted = False
        """Whether it was silent for so long that it is being looked for."""

    @property
    def hints(self) -> tuple[str, ...]:
        """Where it may be dialled."""
        return tuple(lan_hint(self.lan, place, self.port) for place in self.places)

    def contact(self, peer: PeerId) -> Contact:
        """The device and where it may be dialled."""
        return Contact(peer, self.hints)


class LocalView:
    """The nodes of one network."""

    def __init__(self, config: PresenceConfig, now: float) -> None:
        self._config = config
        self._rates = SourceRates(config.burst, config.rate, config.sources)
        self._total = Bucket(config.total_rate, config.total_rate, now)
        self.entries: dict[bytes, Entry] = {}
        """By key; those heard first come first."""
        self.admitted = 0
        """Entries that there ever were for what was heard."""
        self.checked = 0
        """Signatures that were checked."""

    def heard(self, source: str, datagram: bytes, ours: bytes, now: float) -> Entry | None:
        """The node whose announcement this is, if anything about it is new.

        `RemoteError` if it is refused; None if it is our own, or says nothing new.
        """
        if not self._total.spend(now):
            raise RemoteError(Reason.FLOODING, "too many announcements on this network")
        if not self._rates.spend(source, now):
            raise RemoteError(Reason.FLOODING, f"too many announcements from {source}")
        said = read_announcement(datagram)
        if said.lan == ours:
            return None
        entry = self.entries.get(said.lan)
        if entry is None or entry.datagram != datagram:
            return self._news(entry, said, source, datagram, now)
        entry.heard_at, entry.is_doubted = now, False
        return entry if self._placed(entry, source, now) else None

    def _news(
        self, entry: Entry | None, said: Announcement, source: str, datagram: bytes, now: float
    ) -> Entry:
        if entry is not None and entry.nonce == said.nonce:
            raise RemoteError(Reason.REPEATED_NONCE, f"another announcement of the same nonce from {source}")
        self.checked += 1
        check_announcement(datagram, said.lan)
        if entry is None:
            entry = self._admit(said.lan, source, now)
        entry.datagram, entry.port, entry.nonce = datagram, said.port, said.nonce
        entry.heard_at, entry.is_doubted = now, False
        entry.places.clear()
        self._placed(entry, source, now)
        return entry

    def _admit(self, lan: bytes, source: str, now: float) -> Entry:
        config = self._config
        if sum(source in entry.places for entry in self.entries.values()) >= config.source_entries:
            raise RemoteError(Reason.TOO_MANY, f"{config.source_entries} nodes are at {source} already")
        self._make_room(lambda entry: entry.failures > 0)
        self.admitted += 1
        entry = self.entries[lan] = Entry(lan, now)
        return entry

    def _make_room(self, may_go: Callable[[Entry], bool]) -> None:
        """Let go of one that was not met, if there are as many as may be; those who were met stay."""
        most = self._config.entries
        if len(self.entries) < most:
            return
        ghosts = (each.lan for each in self.entries.values() if each.peer is None and may_go(each))
        ghost = next(ghosts, None)
        if ghost is None:
            raise RemoteError(Reason.TOO_MANY, f"{most} nodes are on this network already")
        del self.entries[ghost]

    def _placed(self, entry: Entry, source: str, now: float) -> bool:
        """Note where it was heard from; whether that is new."""
        is_new = source not in entry.places
        if is_new and len(entry.places) >= _PLACES:
            raise RemoteError(Reason.TOO_MANY, f"a node at more than {_PLACES} addresses, now {source}")
        entry.places[source] = now
        return is_new

    def met(self, lan: bytes, now: float) -> Entry:
        """The node of this key, which has proved it: one that was not heard yet is here all the same."""
        entry = self.entries.get(lan)
        if entry is None:
            self._make_room(lambda entry: True)
            entry = self.entries[lan] = Entry(lan, now)
        entry.heard_at, entry.is_doubted = now, False
        return entry

    def doubtful(self, now: float) -> list[Entry]:
        """Those who were met and are silent for too long, and are not being looked for yet."""
        before = now - self._config.doubt
        return [
            entry
            for entry in self.entries.values()
            if entry.heard_at <= before and entry.peer is not None and entry.places and not entry.is_doubted
        ]

    def expire(self, now: float) -> list[Entry]:
        """Forget those who were not heard for too long, and return them."""
        before = now - self._config.expiry
        gone = [entry for entry in self.entries.values() if entry.heard_at <= before]
        for entry in gone:
            del self.entries[entry.lan]
        for entry in self.entries.values():
            fresh = {place: at for place, at in entry.places.items() if at > before}
            # Who was only met lately is where it was heard last.
            entry.places = fresh or entry.places
        return gone

    def next_look(self, now: float) -> float | None:
        """When the next of them is to be doubted or forgotten, if nothing more is heard of it."""
        if self.doubtful(now):
            return now
        return min((self._look(entry, now) for entry in self.entries.values()), default=None)

    def _look(self, entry: Entry, now: float) -> float:
        doubt = entry.heard_at + self._config.doubt
        return doubt if doubt > now else entry.heard_at + self._config.expiry
