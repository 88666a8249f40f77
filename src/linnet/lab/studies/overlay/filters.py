"""What randomised filters are good for, and what they tell: neighbours found by them, and topics inferred.

Utility: the topics that a user shares with the twenty who seem to share most by filters, over those it shares
with the twenty who do; and the same for likeness, which is what nodes go by. Privacy: the area under the
curve of an attacker who knows the name of a topic and judges by the likelihood of a filter whether its owner
has it; one half is guessing. Of a private topic nobody outside knows the tag, and no filter tells of it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from math import sqrt
from random import Random

from msgspec import Struct

from linnet.core.ids import PeerId, TopicId
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.gossip.messages import Descriptor
from linnet.overlay.gossip.profile_filter import (
    ShownFilter,
    bit_positions,
    bits_of,
    cosine,
    likelihood,
    make_release,
    one_sided,
    read_filter,
    two_sided,
)
from linnet.sim.overlay.scenario import Interests
from linnet.sim.seeded_random import named_luck

NEAREST = 20
PPM = 1_000_000
_EPOCH = 1
_GUESSES = 2000
"""Users whom the attacker judges by a topic that they have, and by one that they may have."""


class FilterPlan(Struct, frozen=True):
    """One point of the curve."""

    epsilon: float
    hashes: int
    bits: int = 1024


class _Users:
    """Everyone's topics, exactly and as they are shown."""

    def __init__(self, plan: FilterPlan, interests: Interests, luck: Random) -> None:
        config = TrackerlessConfig(
            epsilon=plan.epsilon, filter_hashes=plan.hashes, filter_bits=plan.bits, least_topics=1
        )
        self.interests = interests
        self.topics = 1 + max(topic for own in interests for topic in own)
        tags = [TopicId(luck.randbytes(32)) for _ in range(self.topics)]
        owned = [[tags[topic] for topic in own] for own in interests]
        self.shown = [_shown(own, config, luck.randbytes(32)) for own in owned]
        self.exact = [bits_of(own, _EPOCH, plan.bits, plan.hashes) for own in owned]
        self.spots = [bit_positions(tag, _EPOCH, plan.bits, plan.hashes) for tag in tags]
        self.sets = [frozenset(own) for own in interests]


def measure_filters(plan: FilterPlan, interests: Interests, seed: int) -> dict[str, int]:
    """Utility with our own filter exact, with both randomised, likeness, and the attack; in millionths."""
    luck = named_luck(seed, f"filters/{plan.epsilon}/{plan.hashes}/{plan.bits}")
    users = _Users(plan, interests, luck)
    best = one = both = like = likest = 0.0
    for user in range(len(interests)):
        found = _gains(users, user)
        best, one, both = best + found[0], one + found[1], both + found[2]
        likest, like = likest + found[3], like + found[4]
    return {
        "utility": round(PPM * one / best) if best else 0,
        "utility_two_sided": round(PPM * both / best) if best else 0,
        "likeness": round(PPM * like / likest) if likest else 0,
        "attack": round(PPM * _attack(users, luck)),
    }


def _gains(users: _Users, user: int) -> tuple[float, ...]:
    """For one user: common topics at best, by one exact filter, by none; likeness at best, and by filters."""
    sets, shown, exact = users.sets, users.shown, users.exact[user]
    others = [other for other in range(len(sets)) if other != user]
    common = [float(len(sets[user] & sets[other])) for other in others]
    sizes = [sqrt(len(sets[user]) * len(sets[other])) for other in others]
    alike = [shared / size for shared, size in zip(common, sizes, strict=True)]
    return (
        sum(sorted(common, reverse=True)[:NEAREST]),
        _gained(common, [one_sided(exact, shown[other].bits, shown[other].flip) for other in others]),
        _gained(common, [two_sided(shown[user], shown[other]) for other in others]),
        sum(sorted(alike, reverse=True)[:NEAREST]),
        _gained(alike, [cosine(exact, shown[other]) for other in others]),
    )


def _attack(users: _Users, luck: Random) -> float:
    having, lacking = [], []
    for _ in range(_GUESSES):
        user = luck.randrange(len(users.sets))
        having.append(likelihood(users.shown[user], users.spots[luck.choice(users.interests[user])]))
        topic = luck.randrange(users.topics)
        if topic not in users.sets[user]:
            lacking.append(likelihood(users.shown[user], users.spots[topic]))
    return area(having, lacking)


def _shown(tags: Sequence[TopicId], config: TrackerlessConfig, noise: bytes) -> ShownFilter:
    made = make_release(tags, _EPOCH, noise, config)
    peer = PeerId(bytes(32))
    return read_filter(
        Descriptor(peer, 1, _EPOCH, made.filter, made.epsilon_milli, made.hashes, (), 0, bytes(64))
    )


def _gained(worth: Sequence[float], scores: Sequence[float]) -> float:
    """What those with the highest scores are worth together."""
    ranked = sorted(range(len(worth)), key=lambda place: (-scores[place], place))
    return sum(worth[place] for place in ranked[:NEAREST])


def area(having: Sequence[float], lacking: Sequence[float]) -> float:
    """The chance that one of the first kind has a higher score than one of the second; a tie counts half."""
    if not having or not lacking:
        return 0.5
    low = sorted(lacking)
    above = sum(bisect_left(low, score) + bisect_right(low, score) for score in having)
    return above / (2 * len(having) * len(low))
