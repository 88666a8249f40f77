"""The same for some events by the shipped index alone: no homes, no pieces, nothing sent anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from linnet.content.matching_index import Index
from linnet.content.predicate import MOST_ATTRIBUTES, Attributes, read_predicate
from linnet.lab.matching.columns import PAIRS, PAIRS_ARROW, batch_of

Sample = Sequence[tuple[int, Attributes]]


def oracle_of(predicates: DataFrame, sample: Sample) -> DataFrame:
    """The pairs of a few events with all predicates, a batch of which is an index. Grain: that of `PAIRS`."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            index: Index[int] = Index()
            for number, text in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                index.add(number, read_predicate(text, MOST_ATTRIBUTES))
            rows = [(event, each) for event, attributes in sample for each in index.matching(attributes)]
            yield batch_of(rows, PAIRS_ARROW)

    return predicates.select("subscription", "predicate").mapInArrow(work, PAIRS.columns)


def pairs_of(matches: DataFrame) -> DataFrame:
    """Pair by pair; one that is found twice is there twice. Grain: that of `PAIRS`, if all is well."""
    return matches.select("event", F.explode("subscriptions").alias("subscription"))


def differences(one: DataFrame, other: DataFrame) -> int:
    """Pairs that are in one and not in the other, each as often as it is there too often."""
    return one.exceptAll(other).count() + other.exceptAll(one).count()
