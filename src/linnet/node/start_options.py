"""The options that ``linnet up`` was started with, kept in the home as ``start``.

A user who starts a relay by `linnet up --role relay` expects a relay after a restart of the machine. So a
start without options uses the options of the last start that had any. Options add to linnet.toml; the options
of one start replace those of the start before.
"""

from __future__ import annotations

import shlex
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from linnet.node import config_file
from linnet.node.config import NodeConfig, StorageSection
from linnet.node.config_problems import check
from linnet.node.home import Home, HomeError
from linnet.node.keyfiles import KeyFileError, read_private, write_private
from linnet.overlay.config import Overlay
from linnet.rooms.config import RelayPolicy

ANYONE = "anyone"
"""Stands for any person or device."""

_DEVICE = "ld1"
_REPLACED = ("listen", "advertise")
"""Options whose new value replaces the one before."""


class Role(StrEnum):
    """What a node can do for others."""

    TRACKER = "tracker"
    RELAY = "relay"
    PROXY = "proxy"


class StartOptions(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What the command line adds to linnet.toml; the fields are named as its options."""

    role: tuple[Role, ...] = ()
    allow: tuple[str, ...] = ()
    store: tuple[str, ...] = ()
    listen: tuple[str, ...] = ()
    advertise: tuple[str, ...] = ()
    tracker: tuple[str, ...] = ()
    bootstrap: tuple[str, ...] = ()
    overlay: Overlay | None = None
    proxy: tuple[str, ...] = ()

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices in `allow`, which a proxy serves."""
        return tuple(each for each in self.allow if each.startswith(_DEVICE))

    @property
    def people(self) -> tuple[str, ...]:
        """The people in `allow`, whose rooms a relay serves."""
        return tuple(each for each in self.allow if not each.startswith(_DEVICE))

    def __str__(self) -> str:
        """Return the options as they are typed."""
        words: list[str] = []
        for name in self.__struct_fields__:
            value = getattr(self, name)
            for each in value if isinstance(value, tuple) else () if value is None else (value,):
                words += [f"--{name}", str(each)]
        return shlex.join(words)

    def lacking_in(self, given: StartOptions) -> StartOptions:
        """Return those of these options that a start with the given ones lacks, except replaced addresses."""
        lacking: dict[str, Any] = {}
        for name in self.__struct_fields__:
            mine, theirs = getattr(self, name), getattr(given, name)
            if not theirs:
                lacking[name] = mine
            elif isinstance(mine, tuple) and name not in _REPLACED:
                lacking[name] = tuple(each for each in mine if each not in theirs)
        return StartOptions(**lacking)

    def joined(self, more: StartOptions) -> StartOptions:
        """Return both sets of options together; these take precedence where only one value is possible."""
        both: dict[str, Any] = {}
        for name in self.__struct_fields__:
            mine, theirs = getattr(self, name), getattr(more, name)
            both[name] = (*mine, *theirs) if isinstance(mine, tuple) else mine or theirs
        return StartOptions(**both)

    def add_to(self, config: NodeConfig) -> NodeConfig:
        """Return the configuration with these options added; raises `ConfigError` if that is wrong."""
        config = self._add_addresses(config)
        config = self._add_overlay(config)
        config = self._add_roles(config)
        if self.proxy:
            proxies = dict.fromkeys((*self.proxy, *config.edge.proxies))
            config = replace(config, edge=replace(config.edge, proxies=tuple(proxies)))
        known = {rule.stream for rule in config.storage}
        stored = (StorageSection(name) for name in dict.fromkeys(self.store) if name not in known)
        config = replace(config, storage=(*config.storage, *stored))
        check(config)
        return config

    def _add_addresses(self, config: NodeConfig) -> NodeConfig:
        node = config.node
        if self.listen:
            # A user who types an address means it: only a file that is copied around needs `listen_wide`.
            node = replace(node, listen=self.listen, listen_wide=True)
        if self.advertise:
            node = replace(node, advertise=self.advertise)
        return replace(config, node=node)

    def _add_overlay(self, config: NodeConfig) -> NodeConfig:
        """Add trackers and bootstrap nodes; bootstrap nodes without a tracker choose the ring."""
        node = replace(
            config.node,
            trackers=tuple(dict.fromkeys((*config.node.trackers, *self.tracker))),
            bootstrap=tuple(dict.fromkeys((*config.node.bootstrap, *self.bootstrap))),
        )
        overlay = self.overlay
        if overlay is None and self.bootstrap and not node.trackers:
            overlay = Overlay.RING
        return replace(config, node=node if overlay is None else replace(node, overlay=overlay))

    def _add_roles(self, config: NodeConfig) -> NodeConfig:
        tracker = replace(config.tracker, enabled=config.tracker.enabled or Role.TRACKER in self.role)
        proxy = replace(config.proxy, enabled=config.proxy.enabled or Role.PROXY in self.role)
        relay = replace(config.relay, enabled=config.relay.enabled or Role.RELAY in self.role)
        if ANYONE in self.allow and proxy.enabled:
            proxy = replace(proxy, open=True, allow=())
        elif self.devices:
            proxy = replace(proxy, open=False, allow=(*proxy.allow, *self.devices))
        if ANYONE in self.people:
            named = tuple(each for each in self.people if each != ANYONE)
            known = (*relay.allow, *named) if relay.stamp_bits else ()
            relay = replace(relay, policy=RelayPolicy.OPEN, allow=known) if relay.enabled else relay
        elif self.people:
            relay = replace(relay, policy=RelayPolicy.ALLOW, allow=(*relay.allow, *self.people))
        return replace(config, tracker=tracker, proxy=proxy, relay=relay)


def read_options(home: Home) -> StartOptions:
    """Return the options of the last start that had any; raises `HomeError` if they cannot be read."""
    if not home.start.exists():
        return StartOptions()
    try:
        return msgspec.json.decode(read_private(home.start), type=StartOptions)
    except (msgspec.DecodeError, UnicodeDecodeError, KeyFileError, OSError) as error:
        raise HomeError(
            f"{home.start}: the options of the last start cannot be read: {error}; "
            "name them again, or start with linnet.toml alone: linnet up --fresh"
        ) from error


def keep_options(home: Home, options: StartOptions) -> None:
    """Store the options for later starts without options."""
    if options != StartOptions():
        write_private(home.start, msgspec.json.encode(options) + b"\n", replace=True)
    else:
        home.start.unlink(missing_ok=True)


def next_config(home: Home) -> NodeConfig:
    """Return the configuration that `linnet up` would use without options."""
    return read_options(home).add_to(config_file.load(home.config))
