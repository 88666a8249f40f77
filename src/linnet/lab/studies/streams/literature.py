"""Other overlays, as a table of the source has them."""

from __future__ import annotations

from importlib import resources

import msgspec


class Overlay(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row, in the words of the source."""

    name: str
    kind: str
    underlay: str
    at_1000: str
    """RDP at about 1,000 nodes."""
    range: str
    sizes: str
    growth: str
    note: str = ""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    overlay: tuple[Overlay, ...]


def literature() -> tuple[Overlay, ...]:
    """Juslenius 2021, table 5.4."""
    data = resources.files("linnet.lab.studies.streams").joinpath("literature.toml").read_bytes()
    return msgspec.toml.decode(data, type=_File).overlay
