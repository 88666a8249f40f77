"""What topics are called between two peers: computed once for a pair, since only the two share it."""

from __future__ import annotations

from linnet.core.ids import PeerId, TopicId
from linnet.overlay.trackerless.tags import TopicKeys, hint

PEERS = 256
"""Peers whose names for our topics are remembered; then those of the first are computed anew."""


class Names:
    """The hints of all topics of a node, for those whom it shares them with."""

    __slots__ = ("_keys", "_ours", "_peers", "_remembered")

    def __init__(self, ours: PeerId, remembered: int = PEERS) -> None:
        self._ours = ours
        self._remembered = remembered
        self._keys: dict[TopicId, TopicKeys] = {}
        self._peers: dict[PeerId, dict[TopicId, bytes]] = {}

    def __len__(self) -> int:
        """Peers of whom something is remembered."""
        return len(self._peers)

    def open(self, keys: TopicKeys) -> None:
        """A topic may be named from now on."""
        self._keys[keys.topic] = keys

    def close(self, topic: TopicId) -> None:
        """A topic has no names any more."""
        if self._keys.pop(topic, None) is not None:
            for names in self._peers.values():
                names.pop(topic, None)

    def of(self, topic: TopicId, peer: PeerId) -> bytes:
        """What one of our topics is called between a peer and us."""
        names = self._peers.get(peer)
        if names is not None:
            known = names.get(topic)
            if known is not None:
                return known
        return self._remember(topic, peer, hint(self._keys[topic], self._ours, peer))

    def topic(self, peer: PeerId, name: bytes) -> TopicId | None:
        """Which of our topics a peer calls so; whoever can name it holds its key. None: none of them."""
        for topic, known in self._peers.get(peer, {}).items():
            if known == name:
                return topic
        for topic, keys in self._keys.items():
            if hint(keys, self._ours, peer) == name:
                self._remember(topic, peer, name)
                return topic
        return None

    def _remember(self, topic: TopicId, peer: PeerId, name: bytes) -> bytes:
        names = self._peers.get(peer)
        if names is None:
            if len(self._peers) >= self._remembered:
                del self._peers[next(iter(self._peers))]
            names = self._peers[peer] = {}
        names[topic] = name
        return name
