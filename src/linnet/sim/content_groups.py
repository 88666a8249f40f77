"""A simulated network in which publishers have groups, and others find and join them (FastDelivery)."""

from __future__ import annotations

import re

from msgspec.structs import replace

from linnet.content.fast.commands import JoinGroups, OpenGroup, PublishToGroup
from linnet.content.fast.config import FastConfig
from linnet.peer.config import PeerConfig
from linnet.sim.content_world import ContentWorld

REGIONS = ("africa", "america", "asia", "europe")
CAPACITY = 100
"""Members that each node would serve in all, as published."""
_PRICE = re.compile(r"price=[\d.]+")


def group_of(attributes: str) -> str:
    """The group in which something is said: its topics, and all prices."""
    return _PRICE.sub("price[0,100000]", attributes)


class GroupsWorld(ContentWorld):
    """Nodes in four regions, in turn."""

    def _config_of(self, name: str) -> PeerConfig:
        region = REGIONS[int(name.removeprefix("node")) % len(REGIONS)]
        fast = FastConfig(region=region, capacity=CAPACITY)
        return replace(super()._config_of(name), fast=fast)

    def open(self, name: str, attributes: str, *, listed: bool = True) -> int:
        """Let a node have a group for what it will say; the number of its answer."""
        return self.network.ask(self.identities[name].peer, OpenGroup(group_of(attributes), listed))

    def subscribe(self, name: str, predicate: str) -> int:
        """Let a node join all groups that carry this; the number of the subscription."""
        self._subscriptions += 1
        self.network.ask(self.identities[name].peer, JoinGroups(self._subscriptions, predicate))
        return self._subscriptions

    def publish(self, name: str, attributes: str, body: bytes, confirm: float = 0.0) -> int:
        """Let a node say something in its group; the number of its answer."""
        command = PublishToGroup(group_of(attributes), attributes, body, confirm)
        return self.network.ask(self.identities[name].peer, command)
