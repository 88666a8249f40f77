"""How often each method was called, by every name that covers it."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


def rolled_up(parsed: DataFrame) -> DataFrame:
    """Messages by each slice of their method, down to the empty one. Grain: (place, prefix)."""
    named = parsed.where("method IS NOT NULL").select("place", F.explode(slices("method")).alias("prefix"))
    return named.groupBy("place", "prefix").agg(F.count(F.lit(1)).alias("messages"))


def slices(method: str) -> Column:
    """A name, and what is left when its last keyword goes, down to the empty name (`keywords.slices`)."""
    parts = F.split(method, "_")
    lengths = F.sequence(F.lit(1), F.size(parts))
    prefixes = F.transform(lengths, lambda length: F.array_join(F.slice(parts, 1, length), "_"))
    return F.array_distinct(F.concat(F.array(F.lit("")), prefixes))
