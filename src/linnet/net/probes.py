"""Which addresses a node tries on behalf of a peer that wants to know whether it can be dialled.

A tracker that dials whatever it is asked to is a port scanner for everybody. So a peer learns only whether
its own key answers: the reason of a failure and the time that it took are kept from it. At addresses of this
machine and of private networks nothing is tried for a peer from outside. Elsewhere it may have addresses
that it does not come from, as with two kinds of IP; those of one network get a few attempts. In a shared
network, such as that of a proxy before the node, each peer has its own.
"""

from __future__ import annotations

from linnet.core.allowances import Allowances
from linnet.core.ids import PeerId
from linnet.net.address import parse_address
from linnet.net.admission import Networks, address_of
from linnet.net.failure import LinkFailure

_ELSEWHERE = 8
"""Attempts that the peers of one network have at addresses that they do not come from."""
_PER_HOUR = 8
"""How many of these come back in an hour."""


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
        if theirs.is_global and not theirs.is_multicast:
            return self._elsewhere.spend(self._networks.of(origin) or peer, now)
        is_ours_alone = theirs.is_loopback or theirs.is_link_local or theirs.is_unspecified
        return theirs.is_private and ours.is_private and not is_ours_alone
