"""The bins of `linnet.lab.bins` as columns of Spark, so that no duration has to leave it."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from linnet.lab.bins import NEVER

_EXACT = 64
_SHIFT = 5


def whole_milliseconds(microseconds: Column) -> Column:
    """Milliseconds for a bin: rounded up, so that nothing seems faster than it was; below 0 it is 0.

    Below 0 is what a clock that is ahead makes of a delay.
    """
    return F.call_function("div", F.greatest(microseconds, F.lit(0)) + 999, F.lit(1000)).cast("bigint")


def bin_column(milliseconds: Column) -> Column:
    """The bin of a duration in whole milliseconds, as `linnet.lab.bins.bin_of` has it."""
    safe = F.greatest(milliseconds, F.lit(_EXACT).cast("bigint"))
    guess = F.floor(F.log2(safe.cast("double"))).cast("int")
    # A logarithm may be off by a rounding at powers of two, never by more.
    one = F.lit(1).cast("bigint")
    doublings = (
        F.when(F.call_function("shiftleft", one, guess) > safe, guess - 1)
        .when(F.call_function("shiftleft", one, guess + 1) <= safe, guess + 1)
        .otherwise(guess)
    )
    fine = doublings - _SHIFT
    coarse = F.call_function("shiftleft", fine, F.lit(_SHIFT)) + F.call_function("shiftright", safe, fine)
    binned = F.when(milliseconds < _EXACT, milliseconds).otherwise(coarse)
    return F.when(milliseconds < 0, F.lit(NEVER)).otherwise(binned).cast("int")
