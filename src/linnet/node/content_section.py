"""Content in ``linnet.toml``."""

from __future__ import annotations

from msgspec.structs import asdict

from linnet.content.config import ContentConfig
from linnet.content.fast.config import FastConfig
from linnet.node.config_types import Problem


class ContentSection(ContentConfig, frozen=True, forbid_unknown_fields=True):
    """Whether this node takes part in content, where people subscribe to what is said, and how."""

    enabled: bool = False
    """Whether it does. It then also carries subscriptions and events of others. Needs `kademlia.enabled`, by
    which nodes find each other."""


class GroupsSection(FastConfig, frozen=True, forbid_unknown_fields=True):
    """Groups of publishers in content, and what this node does for those of others; see `[content]`."""


def content_config(section: ContentSection) -> ContentConfig | None:
    """What the machine is told; None: it takes no part."""
    if not section.enabled:
        return None
    names = ContentConfig.__struct_fields__
    return ContentConfig(**{name: value for name, value in asdict(section).items() if name in names})


def groups_config(section: GroupsSection) -> FastConfig:
    """What the machine is told of groups."""
    return FastConfig(**asdict(section))


def content_problems(section: ContentSection, has_table: bool, is_edge: bool) -> list[Problem]:
    """What types alone do not see."""
    if not section.enabled:
        return []
    if is_edge:
        what = (
            "has no meaning on the edge, where a node has links to its proxies and on local networks alone: "
            "take it or edge.proxies out"
        )
        return [Problem(("content", "enabled"), what)]
    if not has_table:
        what = "needs the hash table, by which nodes find each other: set kademlia.enabled = true"
        return [Problem(("content", "enabled"), what)]
    return []
