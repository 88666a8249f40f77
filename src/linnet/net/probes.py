"""Which addresses a node tries on behalf of a peer that wants to know whether it can be dialled, and which it
dials because peers have named them.

A tracker that dials whatever it is asked to is a port scanner for everybody. So a peer learns only whether
its own key answers: the reason of a failure and the time that it took are kept from it. At addresses of this
machine and of private networks nothing is tried for a peer from outside. Elsewhere it may have addresses
that it does not come from, as with two kinds of IP; those of one network get a few attempts. In a shared
network, such as that of a proxy before the node, each peer has its own.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable

from linnet.core.allowances import Allowances
from linnet.core.ids import PeerId
from linnet.net.address import parse_address
from linnet.net.admission import IPAddress, Networks, address_of
from linnet.net.failure import LinkFailure

_ELSEWHERE = 8
"""Attempts that the peers of one network have at addresses that they do not come from."""
_PER_HOUR = 8
"""How many of these come back in an hour."""
_SHARED = ipaddress.ip_network("100.64.0.0/10")
"""Addresses that a provider gives to many (RFC 6598), and that private networks over the internet use."""


class Probes:
    """Decides about attempts, by the address that the asking peer has proved."""

    def __init__(self, networks: Networks) -> None:
        self._networks = networks
        self._elsewhere = Allowances(_ELSEWHERE, _PER_HOUR / 3600)

    def may_try(self, peer: PeerId, origin: str | None, place: str, now: float) -> bool:
        """Return whether to dial a resolved address for this peer at `origin`; None: it has no address."""
        try:
            host = parse_address(place).host
        except LinkFailure:
            return True  # An address of another transport, which leads to no machine.
        ours, theirs = address_of(origin or ""), address_of(f"{host}:0")
        if origin is None or ours is None or theirs is None or theirs == ours or ours.is_loopback:
            return True
        if is_outside(theirs):
            return self._elsewhere.spend(self._networks.of(origin) or peer, now)
        return is_beside(ours, theirs)


def is_outside(address: IPAddress) -> bool:
    """Return whether an address leads to one machine, the same from everywhere."""
    return address.is_global and not address.is_multicast


def is_beside(ours: IPAddress, theirs: IPAddress) -> bool:
    """Return whether somebody at `ours` may have `theirs`, which is not the same from everywhere."""
    is_ours_alone = theirs.is_loopback or theirs.is_link_local or theirs.is_unspecified
    if theirs in _SHARED or ours in _SHARED:
        return theirs in _SHARED and ours in _SHARED
    return theirs.is_private and ours.is_private and not is_ours_alone


def may_lead_inside(place: str, linked: Iterable[str], own: Callable[[], Iterable[IPAddress]]) -> bool:
    """Return whether to dial a resolved address that others named, if it is not the same from everywhere.

    An address of this machine or of a private network is one where we are among such: some peer is linked
    from there, or for a private network we have such an address. `own` are ours. So a node that only knows
    peers outside has nothing inside dialled for them. Before the first link nobody outside has named any.
    """
    try:
        theirs = address_of(f"{parse_address(place).host}:0")
    except LinkFailure:
        return True
    if theirs is None or is_outside(theirs):
        return True
    if theirs.is_multicast or theirs.is_unspecified:
        return False
    origins = [each for each in map(address_of, linked) if each is not None]
    if not origins or any(each == theirs or each.is_loopback for each in origins):
        return True
    ours = tuple(own())
    if any(each in ours for each in origins):
        return True  # A peer on this machine, as over a local network.
    return any(is_beside(each, theirs) for each in (*origins, *ours) if not each.is_loopback)
