"""What the jobs say, in the words of `ANSWERS`."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from linnet.lab.studies.places import folding, line, members, methods, reassembly

REFUSED, CONFLICT, GAPS, MESSAGES, PARSED = "refused", "conflict", "gaps", "messages", "parsed"
STATE, HASHES, GENERATIONS, MEMBERS, METHODS = "state", "hashes", "generations", "members", "methods"
JOBS = (REFUSED, CONFLICT, GAPS, MESSAGES, PARSED, STATE, HASHES, GENERATIONS, MEMBERS, METHODS)


def answers_of(fragments: DataFrame, taken: DataFrame, parsed: DataFrame, intervals: DataFrame) -> DataFrame:
    """Every job over the same fragments. Grain: that of `ANSWERS`."""
    steps = folding.steps_of(parsed)
    told = [
        _row(fragments.where("fault IS NOT NULL"), REFUSED, F.col("arrival"), F.col("fault")),
        _row(taken.where("equivocated"), CONFLICT, F.col("fragment"), F.lit("equivocation")),
        _row(line.fragment_gaps(taken), GAPS, _words(F.lit("fragment"), "first"), F.col("last")),
        _row(line.message_gaps(taken), GAPS, _words(F.lit("message"), "first"), F.col("last")),
        _messages(taken),
        _parsed(parsed),
        _row(folding.digests_at(intervals, taken), STATE, F.col("message"), F.col("digest")),
        _row(folding.hash_faults(steps, intervals), HASHES, F.col("message"), F.col("right")),
        _row(line.generation_faults(taken), GENERATIONS, F.col("fragment"), F.col("fault")),
        _members(taken),
        _row(methods.rolled_up(parsed), METHODS, F.col("prefix"), F.col("messages")),
    ]
    return reduce(DataFrame.unionByName, told)


def _row(frame: DataFrame, job: str, key: Column, answer: Column) -> DataFrame:
    return frame.select(
        "place",
        F.lit(job).alias("job"),
        key.cast("string").alias("key"),
        answer.cast("string").alias("answer"),
    )


def _words(*columns: Column | str) -> Column:
    parts = [F.col(each) if isinstance(each, str) else each for each in columns]
    return F.concat_ws(" ", *(each.cast("string") for each in parts))


def _messages(taken: DataFrame) -> DataFrame:
    found = reassembly.messages_of(taken)
    return _row(found, MESSAGES, F.col("message"), _words("whole", "upto", F.sha2("text", 256)))


def _parsed(parsed: DataFrame) -> DataFrame:
    modifier = F.transform(
        "modifiers",
        lambda each: F.concat(each["operator"], each["name"], F.lit("="), F.lower(F.hex(each["value"]))),
    )
    delta = F.coalesce(F.col("delta").cast("string"), F.lit("-"))
    told = _words(
        "method", delta, F.lower(F.hex(F.coalesce("hash", F.lit(b"")))), F.array_join(modifier, ";")
    )
    return _row(parsed, PARSED, F.col("message"), F.coalesce(F.col("fault"), told))


def _members(taken: DataFrame) -> DataFrame:
    judged = members.verdicts(members.changes_of(taken), members.every_test(taken))
    key = _words(F.lower(F.hex("nym")), "message", "generation", "replay")
    return _row(judged, MEMBERS, key, F.col("verdict"))
