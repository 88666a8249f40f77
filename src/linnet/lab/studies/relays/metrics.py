"""From chats to populations: profiles, the selection, and everything summed over chats."""

from __future__ import annotations

from functools import reduce

from msgspec import Struct
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from linnet.lab.bins import NEVER, Bins
from linnet.lab.relays.outcomes import P2P, RELAYS, RETURN_RECEPTION
from linnet.lab.relays.profile import Filters, Profile
from linnet.lab.studies.relays.run import PROFILE

ALL, SELECTED = "all", "selected"
POPULATIONS = (ALL, SELECTED)

FUNNEL = (
    "chats",
    "with two members and a margin",
    "clock shows seconds",
    "few members",
    "short run",
    "selected",
)
"""The steps of the selection, each after those before it."""


def profiles(outcomes: DataFrame, filters: Filters) -> DataFrame:
    """What each chat is like: grain (chat)."""
    told = outcomes.where(f.col("mode") == PROFILE)
    names = (*Profile._fields, "seconds")
    wide = told.groupBy("chat").agg(
        *(f.max(f.when(f.col("measure") == name, f.col("counts")[0])).alias(name) for name in names)
    )
    return wide.select(
        "chat",
        (f.col("seconds") == 1).alias("seconds"),
        f.col("members").cast("int").alias("members"),
        "messages",
        "chars",
        f.col("duration").alias("duration_ms"),
        f.col("median_pause").alias("median_iat_ms"),
        f.col("longest_pause").alias("max_iat_ms"),
        f.col("estimate").alias("estimate_ms"),
    ).withColumn("step", _step(filters))


def _step(filters: Filters) -> Column:
    """How many steps of `FUNNEL` a chat passes."""
    tests = [
        (f.col("members") >= 2) & (f.col("max_iat_ms") > 1000),
        f.col("seconds"),
        f.col("members") <= filters.most_members,
        f.col("estimate_ms") <= filters.longest_run_ms,
        f.col("messages") >= filters.fewest_messages,
    ]
    passed = [reduce(Column.__and__, tests[: number + 1]) for number in range(len(tests))]
    return reduce(Column.__add__, (test.cast("int") for test in passed), f.lit(1))


def funnel(profiles: DataFrame) -> DataFrame:
    """How many chats and messages are left after each step: grain (step)."""
    steps = f.explode(f.sequence(f.lit(1), f.col("step")))
    return (
        profiles.select(steps.alias("step"), "messages")
        .groupBy("step")
        .agg(f.count("*").alias("chats"), f.sum("messages").alias("messages"))
    )


def in_populations(outcomes: DataFrame, profiles: DataFrame) -> DataFrame:
    """Outcomes with the populations that their chat belongs to."""
    both, one = f.array(f.lit(ALL), f.lit(SELECTED)), f.array(f.lit(ALL))
    member = f.when(f.col("step") == len(FUNNEL), both).when(f.col("step") >= 2, one).otherwise(f.array())
    chosen = profiles.select("chat", f.explode(member).alias("population"))
    return outcomes.where(f.col("mode") != PROFILE).join(f.broadcast(chosen), "chat")


def pooled(outcomes: DataFrame, profiles: DataFrame) -> DataFrame:
    """All chats of a population together: grain (population, margin, mode, measure, bin)."""
    return summed(in_populations(outcomes, profiles))


def summed(placed: DataFrame) -> DataFrame:
    """Outcomes that know their population, bin by bin: grain (population, margin, mode, measure, bin)."""
    cells = f.explode(f.arrays_zip("bins", "counts")).alias("cell")
    return (
        placed.select("population", "margin", "mode", "measure", cells)
        .groupBy("population", "margin", "mode", "measure", f.col("cell.bins").alias("bin"))
        .agg(f.sum("cell.counts").alias("count"))
    )


def inversions(outcomes: DataFrame, profiles: DataFrame) -> DataFrame:
    """Chats with more empty periods with relays than without: grain (population, margin)."""
    at = f.array_position("bins", NEVER)
    empty = f.when(at > 0, f.element_at("counts", at.cast("int"))).otherwise(0)
    rows = in_populations(outcomes, profiles).where(f.col("measure") == RETURN_RECEPTION)
    by_chat = rows.groupBy("population", "margin", "chat").agg(
        f.max(f.when(f.col("mode") == P2P, empty)).alias(P2P),
        f.max(f.when(f.col("mode") == RELAYS, empty)).alias(RELAYS),
    )
    return by_chat.groupBy("population", "margin").agg(
        f.count("*").alias("chats"), f.sum((f.col(RELAYS) > f.col(P2P)).cast("bigint")).alias("inverted")
    )


class Pool(Struct, frozen=True):
    """The pooled table in memory; it has some thousands of cells, however many chats there were."""

    cells: dict[tuple[str, int, str, str], dict[int, int]]

    def bins(self, population: str, margin: int, mode: str, measure: str) -> Bins:
        """A histogram; empty if there is none."""
        return self.cells.get((population, margin, mode, measure), {})

    def total(self, population: str, margin: int, mode: str, measure: str) -> int:
        """A sum; 0 if there is none."""
        return self.bins(population, margin, mode, measure).get(0, 0)

    def margins(self) -> list[int]:
        """The numbers of the presences, ascending."""
        return sorted({margin for _, margin, _, _ in self.cells})

    def populations(self) -> list[str]:
        """Those that have any chats."""
        found = {population for population, *_ in self.cells}
        return [population for population in POPULATIONS if population in found]


def read_pool(pooled: DataFrame) -> Pool:
    """Bring the pooled table here."""
    cells: dict[tuple[str, int, str, str], dict[int, int]] = {}
    columns = (column.to_pylist() for column in pooled.toArrow().columns)
    for population, margin, mode, measure, bin, count in zip(*columns, strict=True):
        cells.setdefault((population, margin, mode, measure), {})[bin] = count
    return Pool(cells)
