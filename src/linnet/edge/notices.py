"""What presence tells the machine above it: who is on a local network now."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from linnet.core.ids import Contact, PeerId


class LanPeer(Struct, frozen=True, gc=False):
    """This device is on this network, and may be dialled there at these hints; also if they changed."""

    contact: Contact
    network: bytes


class LanGone(Struct, frozen=True, gc=False):
    """This device is on this network no longer."""

    peer: PeerId
    network: bytes


LanNotice: TypeAlias = LanPeer | LanGone
