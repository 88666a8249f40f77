"""A topic that a node without trackers is in, and those who were named to it as perhaps members."""

from __future__ import annotations

from collections.abc import Container, Mapping

from linnet.core.ids import PeerId
from linnet.overlay.trackerless.tags import TopicKeys

_TRIED = 8
"""Contacts that are tried as neighbours at once, while no member is known."""


class JoinedTopic:
    """One topic."""

    __slots__ = ("contacts", "keepers", "keeps", "keys", "uncovered", "wanted")

    def __init__(self, keys: TopicKeys, keeps: bool, contacts: dict[PeerId, tuple[str, ...]]) -> None:
        self.keys = keys
        self.keeps = keeps
        self.contacts = contacts
        """Perhaps members: named in an invitation, or met before."""
        self.keepers: tuple[PeerId, ...] = ()
        self.wanted: tuple[PeerId, ...] | None = None
        """Whom the ring wanted when neighbours were last chosen."""
        self.uncovered = 0

    @property
    def is_unsettled(self) -> bool:
        """Whether others wait for their turn to be neighbours, though the ring stays as it is."""
        return bool(self.contacts) or self.uncovered > 0

    def first_contacts(self) -> Mapping[PeerId, tuple[str, ...]]:
        """Whom to turn to when the topic is joined."""
        return dict(list(self.contacts.items())[:_TRIED])

    def tried(self, members: Container[PeerId], any_known: bool, turn: int) -> dict[PeerId, tuple[str, ...]]:
        """Contacts to want as neighbours beside the members that are known, with where to dial them.

        Without a member these are several at once. With some it is one at a time, in turns and for good:
        those whom we know may be all on our side of a network that was cut, and the contact on the other.
        """
        outside = [(peer, hints) for peer, hints in self.contacts.items() if peer not in members]
        if not outside:
            return {}
        return dict([outside[turn % len(outside)]] if any_known else outside[:_TRIED])
