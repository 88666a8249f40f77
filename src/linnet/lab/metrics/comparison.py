"""One number against another: differences in percent, errors of estimates, the price of an overlay."""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum

from linnet.lab.errors import LabError


def percent_difference(measured: float, reference: float) -> float | None:
    """How far a number lies above (or, negative, below) a reference, in % of it; None if that is 0."""
    return (measured - reference) / abs(reference) * 100 if reference else None


def percent_error(measured: float, estimated: float) -> float:
    """How far an estimate is off, in % of the estimate.

    The source does not say of which of the two; its printed percentages fit the estimate
    (Juslenius 2021, table 5.3: 5 ms at 172 ms are 2.9 %).
    """
    if not estimated:
        raise LabError("an estimate of 0 has no error in percent")
    return abs(measured - estimated) / abs(estimated) * 100


def mape(pairs: Iterable[tuple[float, float]]) -> float:
    """Mean absolute percentage error over pairs of measured and estimated, each pair counting alike."""
    errors = [percent_error(measured, estimated) for measured, estimated in pairs]
    if not errors:
        raise LabError("there is nothing to take a mean error of")
    return fsum(errors) / len(errors)


def delay_penalty(overlay_mean: float, underlay_mean: float) -> float:
    """RDP: mean delay over the overlay by mean delay of direct sending.

    A ratio of means, as in Juslenius 2021, section 5.4.5, and not a mean of ratios.
    """
    if underlay_mean <= 0:
        raise LabError("a relative delay needs an underlay whose mean delay is above 0")
    return overlay_mean / underlay_mean
