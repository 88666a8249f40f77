"""Hypothesis strategies for signed units of events."""

from __future__ import annotations

from hypothesis import strategies as st

from linnet.core.ids import EventId, TopicId
from linnet.event.event import Spot, Tail, Verified
from linnet.event.signing import message_tail, sign_unit
from linnet.peer.config import Identity
from linnet.testing.identities import known_identity
from linnet.testing.strategies import values

topics = st.binary(min_size=32, max_size=32).map(TopicId)
TOPIC = TopicId(b"t" * 32)
event_ids = st.binary(min_size=32, max_size=32).map(EventId)


def identities() -> st.SearchStrategy[Identity]:
    """One of a few identities, so that equal authors come up often."""
    return st.integers(min_value=0, max_value=3).map(lambda number: known_identity(f"identity {number}"))


@st.composite
def units(draw: st.DrawFn, max_events: int = 4) -> tuple[Identity, Verified]:
    """A signed unit of one or more events, with the identity that signed it."""
    identity = draw(identities())
    tails = draw(st.lists(values(Tail), min_size=1, max_size=max_events))
    first = draw(st.integers(min_value=0, max_value=2**40))
    prev = draw(event_ids) if first else None
    topic = draw(topics)
    unit = sign_unit(identity.device, Spot(topic, identity.author, identity.card.device, first, prev), tails)
    return identity, unit


def chain_of(identity: Identity, count: int, topic: TopicId = TOPIC) -> list[Verified]:
    """A chain of so many messages."""
    made: list[Verified] = []
    for number in range(count):
        tail = message_tail(f"message {number}".encode(), number)
        prev = made[-1].head if made else None
        made.append(
            sign_unit(
                identity.device, Spot(topic, identity.author, identity.card.device, number, prev), (tail,)
            )
        )
    return made
