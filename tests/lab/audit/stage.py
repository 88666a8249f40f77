"""The transforms of an audit over one small trace, each made once."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from pyspark.sql import DataFrame, SparkSession
from tests.lab.audit.tales import frame_of

from linnet.lab.audit.activity import activity_of, begins_of, chains_of, nodes_of, signs_of, tally_of
from linnet.lab.audit.delays import delays_of, timed_of
from linnet.lab.audit.events import arrivals_of, has_bursts, publications_of
from linnet.lab.audit.excuses import excuses_of
from linnet.lab.audit.fates import fates_of, missing_pairs, unserved
from linnet.lab.audit.readers import readers_of, sessions_of, switches_of
from linnet.trace.records import Row


class Staged:
    """Tables of an audit, without files."""

    def __init__(self, spark: SparkSession, rows: Iterable[Row]) -> None:
        self._spark = spark
        self.trace = frame_of(spark, rows).cache()

    def _kept(self, frame: DataFrame) -> DataFrame:
        """The same rows, without where they came from: plans of plans would be slow."""
        return self._spark.createDataFrame(frame.collect(), frame.schema)

    @cached_property
    def signs(self) -> DataFrame:
        return self._kept(signs_of(self.trace))

    @cached_property
    def begins(self) -> DataFrame:
        return self._kept(begins_of(self.signs))

    @cached_property
    def tally(self) -> DataFrame:
        return self._kept(tally_of(self.trace, self.begins))

    @cached_property
    def nodes(self) -> DataFrame:
        return self._kept(nodes_of(self.tally, self.begins))

    @cached_property
    def names(self) -> dict[int, bytes]:
        return {row.number: bytes(row.node) for row in self.nodes.collect()}

    def name(self, number: int) -> bytes:
        return self.names[number]

    @cached_property
    def activity(self) -> DataFrame:
        return self._kept(activity_of(self.tally, self.nodes))

    @cached_property
    def chains(self) -> DataFrame:
        return self._kept(chains_of(self.activity))

    @cached_property
    def places(self) -> dict[int, tuple[bytes, bytes]]:
        return {row.chain: (bytes(row.topic), bytes(row.device)) for row in self.chains.collect()}

    @cached_property
    def publications(self) -> DataFrame:
        return self._kept(publications_of(self.signs, self.chains, self.nodes))

    @cached_property
    def arrivals(self) -> DataFrame:
        bursts = has_bursts(self.activity)
        return self._kept(arrivals_of(self.trace, self.chains, self.nodes, self.publications, bursts))

    @cached_property
    def readers(self) -> DataFrame:
        switches = self._kept(switches_of(self.signs, self.nodes))
        return self._kept(readers_of(self.activity, self.nodes, switches))

    @cached_property
    def timed(self) -> DataFrame:
        return self._kept(timed_of(self.arrivals, self.chains, self.readers))

    @cached_property
    def delays(self) -> DataFrame:
        return self._kept(delays_of(self.timed))

    def missing(self, grace_us: int) -> DataFrame:
        lacking = self._kept(unserved(self.publications, self.arrivals, self.chains, self.readers))
        pairs = self._kept(missing_pairs(lacking, self.arrivals, self.readers))
        sessions = self._kept(sessions_of(self.activity, self.nodes))
        excuses = self._kept(excuses_of(self.trace, self.nodes))
        return self._kept(fates_of(pairs, self.chains, excuses, sessions, grace_us))
