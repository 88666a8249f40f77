"""A k-bucket: contacts of one distance, the least recently seen first, and those who wait for a place.

Who has been there for long stays: of nodes that have been up for an hour most are up for another (Maymounkov
and Mazieres 2002, section 2.1). So a newcomer waits until the one unseen for longest does not answer a ping.
"""

from __future__ import annotations

from collections.abc import Callable

from linnet.core.ids import Contact, PeerId

Admits = Callable[[Contact], bool]
"""Whether a contact may have a place, as far as its address goes."""


class Bucket:
    """At most `k` contacts, and at most so many who wait."""

    def __init__(self, k: int, replacements: int, failures: int) -> None:
        self._k = k
        self._most = replacements
        self._failures = failures
        self._contacts: dict[PeerId, Contact] = {}
        self._waiting: dict[PeerId, Contact] = {}
        self._failed: dict[PeerId, int] = {}
        self.touched = 0.0
        """When a lookup last went through it."""

    def __len__(self) -> int:
        return len(self._contacts)

    def held(self, peer: PeerId) -> Contact | None:
        """The contact of somebody with a place."""
        return self._contacts.get(peer)

    def drop(self, peer: PeerId) -> None:
        """Somebody is to have no place here any more; nobody gets it for that."""
        self._contacts.pop(peer, None)
        self._waiting.pop(peer, None)
        self._failed.pop(peer, None)

    @property
    def contacts(self) -> tuple[Contact, ...]:
        """Those with a place, the least recently seen first."""
        return tuple(self._contacts.values())

    @property
    def waiting(self) -> tuple[Contact, ...]:
        """Those without, the least recently seen first."""
        return tuple(self._waiting.values())

    def seen(self, contact: Contact) -> Contact | None:
        """Somebody was heard of for certain; if there is no place left, whom to ping first."""
        peer = contact.peer
        self._failed.pop(peer, None)
        if self._contacts.pop(peer, None) is not None or len(self._contacts) < self._k:
            self._contacts[peer] = contact
            self._waiting.pop(peer, None)
            return None
        self._waiting.pop(peer, None)
        self._waiting[peer] = contact
        if len(self._waiting) > self._most:
            del self._waiting[next(iter(self._waiting))]
        return next(iter(self._contacts.values())) if self._waiting else None

    def failed(self, peer: PeerId, admits: Admits) -> tuple[bool, Contact | None]:
        """Somebody did not answer: whether it lost its place, and who has that now.

        Where nobody waits for the place it is kept for a while: the fault may be on our side.
        """
        self._waiting.pop(peer, None)
        if peer not in self._contacts:
            return False, None
        self._failed[peer] = self._failed.get(peer, 0) + 1
        gone = self._contacts.pop(peer)
        heir = next((each for each in reversed(self._waiting.values()) if admits(each)), None)
        if heir is None and self._failed[peer] < self._failures:
            self._contacts = {peer: gone, **self._contacts}
            return False, None
        del self._failed[peer]
        if heir is not None:
            del self._waiting[heir.peer]
            self._contacts[heir.peer] = heir
        return True, heir
