"""What the demo and its processes tell each other, a JSON value per line; and what they write down."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct


class Begin(Struct, frozen=True):
    """To a process: publish so many events, evenly over so many seconds."""

    messages: int
    seconds: float


class Ready(Struct, frozen=True, tag="ready"):
    """From a process: its node runs."""

    address: str
    device: str


class State(Struct, frozen=True, tag="state"):
    """From a process, a few times a second: how far it is."""

    received: int
    published: int
    neighbors: int
    tracker: str | None
    """The device id of the tracker that it follows."""


class Resumed(Struct, frozen=True, tag="resumed"):
    """From a process: its durable subscription is on; whether it was there before."""

    resumed: bool


Report: TypeAlias = Ready | State | Resumed


class Body(Struct, frozen=True):
    """What the publishers of the demo say."""

    number: int
    at: float
    """When it was handed to the node, Unix time."""


class Published(Struct, frozen=True):
    """A line of ``published.jsonl``: an event that the node took."""

    id: str


class Received(Struct, frozen=True, omit_defaults=True):
    """A line of ``received.jsonl``: what a subscription was handed, in this order."""

    id: str = ""
    at: float = 0.0
    """When it was published."""
    got: float = 0.0
    """When it was handed over."""
    missed: int = 0
    """Or: so many events could not be had."""
