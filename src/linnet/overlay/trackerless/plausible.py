"""Which filters are believed: none that makes its owner everyone's twin, or everyone's opposite.

A filter with all bits set is like every other, and one with none is unlike all. Randomising pulls the
number of ones towards the middle, so both give themselves away: an honest filter lies within four standard
deviations of what its noise and a credible number of topics explain.
"""

from __future__ import annotations

from math import sqrt

from linnet.core.errors import RemoteError
from linnet.core.reasons import Reason
from linnet.overlay.trackerless.config import TrackerlessConfig
from linnet.overlay.trackerless.descriptor import DescriptorCheck, check_descriptor
from linnet.overlay.trackerless.estimates import (
    Shown,
    common_topics,
    flip_probability,
    read,
    spread_of_common,
)
from linnet.overlay.trackerless.filter import Interests, most_topics
from linnet.overlay.trackerless.messages import Descriptor

FEWEST = 5
"""Bits that a filter sets at least before the noise. Every honest one shows eight topics or more, and with
x flips expected, x + 5 - 4√x is above 0 for every x: a filter of zeros never passes."""
FULLEST = 0.3
"""Share of its bits that a filter sets at most before the noise; honest ones stop at a quarter."""
NOISIEST = 0.4
"""Probability of flips beyond which any likeness would be luck, so that one could just try."""
SMALLEST = 256
"""Bits of the smallest filter that says something."""
_DEVIATIONS = 4.0


def filter_faults(config: TrackerlessConfig) -> list[tuple[str, str]]:
    """Settings, each with what is wrong, by which a node would show filters that no other believes."""
    found = []
    if config.filter_bits % 8:
        found.append(
            ("filter_bits", f"{config.filter_bits} is wrong; a filter has whole bytes, of 8 bits each")
        )
    if flip_probability(round(config.epsilon * 1000), config.filter_hashes) > NOISIEST:
        told = f"{config.epsilon} is too little for filter_hashes = {config.filter_hashes}"
        found.append(
            ("epsilon", f"{told}: nobody believes a filter of so much noise; take 0.41 for each or more")
        )
    most = most_topics(config.filter_bits, config.filter_hashes)
    if config.least_topics > most:
        told = f"{config.least_topics} is more than the {most} topics"
        found.append(("least_topics", f"{told} that such a filter shows at most; make filter_bits larger"))
    return found


def is_plausible(descriptor: Descriptor) -> bool:
    """Whether an honest node may show this filter. To show none is honest."""
    return not descriptor.filter or is_credible(read(descriptor))


def is_credible(shown: Shown) -> bool:
    """The same of a filter that was read already; here there must be one."""
    m, p = shown.size, shown.flip
    if m < SMALLEST or p > NOISIEST:
        return False
    slack = _DEVIATIONS * sqrt(m * p * (1 - p))
    noise = m * p
    least = noise + FEWEST * (1 - 2 * p) - slack
    most = noise + FULLEST * m * (1 - 2 * p) + slack
    return least <= shown.bits.bit_count() <= most


def believing(check: DescriptorCheck = check_descriptor) -> DescriptorCheck:
    """A check of descriptors that wants a plausible filter as well."""

    def check_all(descriptor: Descriptor, now: float) -> None:
        check(descriptor, now)
        if not is_plausible(descriptor):
            raise RemoteError(Reason.IMPLAUSIBLE_FILTER, "no honest node shows such a filter")

    return check_all


def is_contradicted(own: Interests, shown: Shown, common: int) -> bool:
    """Whether an intersection found far fewer common topics than the filter promised.

    That happens to a copy of our own filter. To find more is no offence: topics that were subscribed to
    since the epoch began are in the intersection and not in the filter.
    """
    promised = common_topics(own.bits, own.topics, shown)
    return promised - common > _DEVIATIONS * spread_of_common(own.bits, own.topics, common, shown)
