"""A shared counter: a way to subscribe that a program adds to its node by one registration.

Everybody who opens a counter may add to it and reads the same value. What each device adds is a chain of
signed events: durable, counted once, acknowledged by receipts, and caught up by devices that were away.

    async with Node(home, protocols=[COUNTER]) as node:
        await node.ask(OpenCounter("visitors"))
        added = await node.ask(AddToCounter("visitors", 1))
        print(added.value)

docs/design/add-a-protocol.md walks through it. Run it: python -m examples.counter
"""

from __future__ import annotations

from examples.counter.commands import (
    AddToCounter,
    CloseCounter,
    ExamineCounter,
    ExamineFates,
    OpenCounter,
    ReadCounter,
)
from examples.counter.messages import Addition, Additions, AskAdditions, CounterReceipt, CountsAre
from examples.counter.part import Counters

from linnet.machine.protocol import Offer, Protocol
from linnet.peer.config import Surroundings

__all__ = [
    "COUNTER",
    "AddToCounter",
    "CloseCounter",
    "ExamineCounter",
    "ExamineFates",
    "OpenCounter",
    "ReadCounter",
]

COUNTER: Protocol[Surroundings] = Protocol(
    "counter",
    messages=(Addition, CountsAre, AskAdditions, Additions, CounterReceipt),
    bulk=(Additions,),
    make=Counters,
    offers=(
        Offer("POST", "/v1/counters/{counter}/open", OpenCounter),
        Offer("POST", "/v1/counters/{counter}/close", CloseCounter),
        Offer("POST", "/v1/counters/{counter}/add", AddToCounter),
        Offer("GET", "/v1/counters/{counter}", ExamineCounter),
        Offer("GET", "/v1/counters/{counter}/fates", ExamineFates),
        Offer("GET", "/v1/counters/{counter}/read", ReadCounter, is_subscription=True),
    ),
)
"""All that a node has to be told of it."""
