"""The bounds of the driver: what one link, one peer and one loop turn may take."""

from __future__ import annotations

from msgspec import Struct

from linnet.core.limits import KIB, MIB


class NetConfig(Struct, frozen=True):
    """How links are opened, filled and cut."""

    dial_timeout: float = 10.0
    """Seconds to reach a peer at any of its addresses, and as long again for authentication and `Hello`."""
    dial_stagger: float = 0.25
    """Seconds after which the next address is tried beside one that has not answered (RFC 8305)."""
    max_dials: int = 128
    """Dials and probes under way at once; more wait for their turn."""
    handshake_timeout: float = 10.0
    """Seconds that a stranger has to encrypt, to prove its key and to say `Hello`."""
    max_handshakes: int = 1024
    """Strangers that are served at once; more are turned away with ``too_many_links``."""
    shared_networks: tuple[str, ...] = ()
    """Prefixes such as ``10.0.0.0/8`` whose addresses many honest peers share: a company's, or that of a
    proxy before this node. Elsewhere the peers of a /24 (IPv6: /48) share what this node has for strangers,
    once that is scarce."""
    hold_timeout: float = 3.0
    """Seconds that the smaller key of two nodes that dial each other keeps the other's dial waiting."""
    backlog: int = 1024
    """Connections that the system may keep for us unaccepted: a mass join dials all at once."""
    outbox_bytes: int = 16 * MIB
    """Bytes that may wait for one peer; past this it is cut with ``slow_peer``."""
    outbox_age: float = 30.0
    """Seconds that the oldest message may wait for one peer; past this it is cut with ``slow_peer``."""
    high_mark: int = 1 * MIB
    """Waiting bytes from which on a link is congested."""
    low_mark: int = 256 * KIB
    """Waiting bytes below which a congested link has drained."""
    write_bytes: int = 256 * KIB
    """Bytes of one write, and bytes that the transport may buffer: what control cannot overtake."""
    frames_per_turn: int = 256
    """Frames of one link that are handled in one loop turn, so that a flood delays nobody else."""
    bytes_per_turn: int = 512 * KIB
    """Bytes of one link that are handled in one loop turn: a few bursts, then the application's turn."""
    inbox_bytes: int = 1 * MIB
    """Received and unhandled bytes of one link past which it is not read."""
    uncommitted_inputs: int = 8192
    """Inputs that may be handled ahead of the store; past this no link is read until it has caught up."""
    unfinished_bytes: int = 64 * MIB
    """Bytes of frames that have begun and not ended, on all links together; past this the link with most
    of them is cut with ``slow_peer``."""
    unknown_messages: int = 64
    """Messages a minute that this node does not know and that a peer may send; past this the peer is cut with
    ``flooding``. A newer node hears at the first of each kind that it is not known here."""
    linger: float = 5.0
    """Seconds that a link which hangs up has to send its waiting messages and its reason."""
    sweep_period: float = 1.0
    """Seconds between looks at the age of outboxes and at the wall clock."""


class LanConfig(Struct, frozen=True):
    """Which local networks are watched, and the multicast groups and port to use there."""

    interfaces: tuple[str, ...] = ()
    """Names of interfaces; empty: all that are up, can multicast, and lead to other machines."""
    group4: str = "239.255.77.3"
    """Of the administratively scoped block, "local" (RFC 2365)."""
    group6: str = "ff12::7703"
    """A transient group on the link (RFC 4291)."""
    port: int = 47_703
    scan_period: float = 5.0
    """Seconds between looks at the interfaces."""
    grace: float = 60.0
    """Seconds for which yesterday's key and port are still answered to."""
