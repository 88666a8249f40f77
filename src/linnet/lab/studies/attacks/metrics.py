"""From single runs to one row for each attack and share: means, the worst run, and intervals."""

from __future__ import annotations

from math import sqrt

from msgspec import Struct
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from scipy.stats import t as student

from linnet.lab.tables import Table

KEYS = ("way", "attack", "joins", "share_ppm")
CONFIDENCE = 0.95

SUMMARY = Table(
    "attack_summary",
    1,
    "way STRING NOT NULL, attack STRING NOT NULL, joins STRING NOT NULL, share_ppm BIGINT NOT NULL, "
    "runs BIGINT NOT NULL, mean DOUBLE NOT NULL, deviation DOUBLE NOT NULL, least DOUBLE NOT NULL, "
    "without DOUBLE, worst_us BIGINT NOT NULL, noticed BIGINT NOT NULL, told_us DOUBLE, "
    "told_most_us BIGINT, unnoticed_losses BIGINT NOT NULL, attacker_bytes DOUBLE NOT NULL, "
    "honest_bytes DOUBLE NOT NULL, blamed BIGINT NOT NULL",
    KEYS,
)
"""Each attack and share over all repeats.

`mean`, `deviation` and `least` are of the share of due deliveries that came, run by run; `without` is the
mean in the same runs without the attack. `noticed` counts the runs in which somebody was told of it,
`unnoticed_losses` those in which deliveries are missing and nobody was told.
"""


def summary_of(runs: DataFrame) -> DataFrame:
    """Return the repeats of each attack and share as one row. Grain: that of `SUMMARY`."""
    arrived = F.col("delivered") / F.col("due")
    is_unnoticed = (F.col("delivered") < F.col("due")) & F.col("told_us").isNull()
    return runs.groupBy(*KEYS).agg(
        F.count(F.lit(1)).alias("runs"),
        F.avg(arrived).alias("mean"),
        F.coalesce(F.stddev_samp(arrived), F.lit(0.0)).alias("deviation"),
        F.min(arrived).alias("least"),
        F.avg(F.col("delivered_without") / F.col("due")).alias("without"),
        F.max("worst_us").alias("worst_us"),
        F.count("told_us").alias("noticed"),
        F.avg("told_us").alias("told_us"),
        F.max("told_us").alias("told_most_us"),
        F.count_if(is_unnoticed).alias("unnoticed_losses"),
        F.avg("attacker_bytes").alias("attacker_bytes"),
        F.avg("honest_bytes").alias("honest_bytes"),
        F.sum("blamed").alias("blamed"),
    )


class Outcome(Struct, frozen=True):
    """One row of `SUMMARY`."""

    way: str
    attack: str
    joins: str
    share_ppm: int
    runs: int
    mean: float
    deviation: float
    least: float
    without: float | None
    worst_us: int
    noticed: int
    told_us: float | None
    told_most_us: int | None
    unnoticed_losses: int
    attacker_bytes: float
    honest_bytes: float
    blamed: int

    @property
    def share(self) -> float:
        """The share of attackers."""
        return self.share_ppm / 1_000_000

    @property
    def interval(self) -> tuple[float, float]:
        """The interval in which the mean share of deliveries lies with 95 % confidence (Student's t)."""
        if self.runs < 2:
            return 0.0, 1.0
        factor = float(student.ppf(0.5 + CONFIDENCE / 2, self.runs - 1))
        reach = factor * self.deviation / sqrt(self.runs)
        return max(0.0, self.mean - reach), min(1.0, self.mean + reach)
