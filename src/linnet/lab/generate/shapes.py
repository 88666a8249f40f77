"""How large chats are: members and messages. The model has no law for these that meets the data; this does.

Members. 42 % of chats have two members, 41 % have 3 to 30 by a log-uniform law, 17 % have 31 to 252 by
a power law of exponent 1.65. The shares and the ends are published; the two forms are our choice, the
exponent such that 5,956 chats have 117,600 members (published: more than 117,000). The source model's own
law has 98 % of chats at up to 30 members, and a largest of 256.

Messages. Log-normal with sigma 1.43, the scale such that the total is exactly what was asked for; on top of
one message by each member, and at most two million in a chat. Only the mean is published (12,760); sigma is
chosen such that about as many chats pass the selection of Schichtholz 2024, section 6.2.4, as did there:
103 of the 1,598 in seconds (102 with seed 1). At full size the middle half of chats has 1,800 to 12,100
messages, the largest one million and the smallest about twenty. Messages and members are independent.

Both are spread evenly over their law (chat i of N at quantile i), not drawn, so that the published marks hold
for few chats too; the seed decides which chat gets which.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

from linnet.lab.errors import LabError
from linnet.lab.generate.facts import DYADS, LARGEST, UP_TO_30

MOST_MESSAGES = 2_000_000
"""In one chat, which is drawn as a whole by one task."""

_SMALL = (3, 30)
_EXPONENT = 1.65
_SIGMA = 1.43
_FINE = 1_000_000


def group_size(quantile: float) -> int:
    """Members of the chat at this quantile, 0 to 1."""
    if quantile < DYADS:
        return 2
    if quantile < UP_TO_30:
        first, last = _SMALL
        within = (quantile - DYADS) / (UP_TO_30 - DYADS)
        return int(first * ((last + 1) / first) ** within)
    within = (quantile - UP_TO_30) / (1 - UP_TO_30)
    power = 1 - _EXPONENT
    start, end = (_SMALL[1] + 1) ** power, (LARGEST + 1) ** power
    return min(LARGEST, int((start + within * (end - start)) ** (1 / power)))


def group_sizes(chats: int) -> list[int]:
    """Members of so many chats, rising; both ends of the law are among them."""
    return [group_size(n / max(1, chats - 1)) for n in range(chats)]


def weights(chats: int) -> list[int]:
    """How many messages each chat has in proportion to the others, rising."""
    normal = NormalDist()
    return [round(_FINE * math.exp(_SIGMA * normal.inv_cdf((n + 0.5) / chats))) for n in range(chats)]


def message_counts(total: int, members: Sequence[int], weights: Sequence[int]) -> list[int]:
    """Messages of each chat: at least one by each member, the rest by weight, `total` in all."""
    least = sum(members)
    if total < least:
        raise LabError(
            f"{len(members):,} chats have {least:,} members, who write at least once: "
            f"--messages {least} or more, or fewer --chats"
        )
    if total > MOST_MESSAGES * len(members):
        raise LabError(f"a chat has at most {MOST_MESSAGES:,} messages: fewer --messages, or more --chats")
    rooms = [MOST_MESSAGES - each for each in members]
    return [a + b for a, b in zip(members, apportion(total - least, weights, rooms), strict=True)]


def apportion(total: int, weights: Sequence[int], rooms: Sequence[int]) -> list[int]:
    """Integers in proportion to weights above 0 that sum to `total`, none above its room.

    What a full one cannot take goes to the others in proportion; what is left by rounding down goes to
    the largest fractions, by number among equals.
    """
    shares = [0] * len(weights)
    open_ = list(range(len(weights)))
    left = total
    while open_:
        whole = sum(weights[n] for n in open_)
        full = [n for n in open_ if left * weights[n] >= rooms[n] * whole]
        if not full:
            break
        for n in full:
            shares[n] = rooms[n]
        left -= sum(rooms[n] for n in full)
        filled = set(full)
        open_ = [n for n in open_ if n not in filled]
    for n in open_:
        shares[n] = left * weights[n] // whole
    spare = left - sum(shares[n] for n in open_)
    for n in sorted(open_, key=lambda n: (-(left * weights[n] % whole), n))[:spare]:
        shares[n] += 1
    return shares
