"""A simulated node: an overlay machine, and the topics whose events go along it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from linnet.core.effects import Send
from linnet.core.ids import PeerId, TopicId
from linnet.core.inputs import Received, TimerFired
from linnet.core.timers import Tick
from linnet.delivery.causal_messages import Beyond, Further, Given, Reconcile, Want
from linnet.delivery.messages import Data
from linnet.delivery.recovery import RecoveryDue
from linnet.overlay.notices import NeighborDown, NeighborUp
from linnet.sim import gossip_sync, gossip_topic
from linnet.sim.gossip_topic import GossipTopic, TellHeads, TopicMessage

_OWNERS = (gossip_topic.OWNER, gossip_sync.OWNER)
_MESSAGES = (TellHeads, Want, Given, Beyond, Further, Reconcile)


class OverlayMachine(Protocol):
    """What finds neighbours: its effects have notices of them among others."""

    def handle(self, event: Any, now: float) -> Sequence[Any]:  # noqa: ANN401 - of whatever messages it has
        """Something happened."""

    def neighbors(self, topic: TopicId) -> tuple[PeerId, ...]:
        """The neighbours of a topic."""


class GossipPeer:
    """One node. It is a machine as its overlay is."""

    __slots__ = ("_make", "_overlay_handle", "noise", "overlay", "peer", "silent", "subscribed", "topics")

    def __init__(
        self,
        peer: PeerId,
        overlay: OverlayMachine,
        subscribed: Iterable[TopicId],
        make: Callable[[TopicId], GossipTopic],
        silent: bool = False,
    ) -> None:
        self.peer = peer
        self.overlay = overlay
        self._overlay_handle = overlay.handle
        self.subscribed = dict.fromkeys(subscribed)
        self._make = make
        self.topics: dict[TopicId, GossipTopic] = {}
        """Topics in which something was said: the others take no room."""
        self.silent = silent
        """Whether it takes events and never passes any on: one that lies."""
        self.noise = 0
        """Events of topics that it is not in."""

    def topic(self, topic_id: TopicId) -> GossipTopic | None:
        """A topic that it is in, with the neighbours that it has there."""
        topic = self.topics.get(topic_id)
        if topic is None and topic_id in self.subscribed:
            topic = self.topics[topic_id] = self._make(topic_id)
            for peer in self.overlay.neighbors(topic_id):
                topic.up(peer)
        return topic

    def handle(self, event: Any, now: float) -> Sequence[Any]:  # noqa: ANN401 - see OverlayMachine
        """Something happened."""
        if isinstance(event, Received):
            message = event.message
            if isinstance(message, Data):
                return self._on_topic(event.peer, message.unit.topic, message, now)
            if isinstance(message, _MESSAGES):
                return self._on_topic(event.peer, message.topic, message, now)
        elif isinstance(event, TimerFired):
            timer = event.timer
            if isinstance(timer, Tick) and timer.owner in _OWNERS:
                topic = self.topics.get(TopicId(timer.key[:32]))
                return () if topic is None else topic.fired(timer)
            if isinstance(timer, RecoveryDue):
                topic = self.topics.get(timer.topic)
                return () if topic is None else topic.recover(now)
        return self.spread(self._overlay_handle(event, now), now)

    def spread(self, effects: Sequence[Any], now: float) -> Sequence[Any]:
        """What the overlay wants, with what its notices make the topics want."""
        more: list[Any] = []
        for effect in effects:
            kind = type(effect)
            if kind is NeighborUp:
                topic = self.topics.get(effect.topic)
                if topic is not None:
                    more += topic.up(effect.peer)
            elif kind is NeighborDown:
                topic = self.topics.get(effect.topic)
                if topic is not None:
                    more += topic.down(effect.peer, now)
        return [*effects, *more] if more else effects

    def _on_topic(self, peer: PeerId, topic_id: TopicId, message: TopicMessage, now: float) -> Sequence[Any]:
        topic = self.topic(topic_id)
        if topic is None:
            self.noise += isinstance(message, Data)
            return ()
        effects = topic.handle(peer, message, now)
        if self.silent:
            return [effect for effect in effects if not isinstance(effect, Send)]
        return effects
