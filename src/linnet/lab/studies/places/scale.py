"""The jobs over a large log, each a timed stage, and a sample of answers from the shipped classes."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from linnet.core.ids import TopicId
from linnet.lab.stages import Made, Workshop
from linnet.lab.studies.places import folding, line, members, reassembly
from linnet.lab.studies.places.columns import FRAGMENTS, INTERVALS, PARSED, TAKEN
from linnet.lab.studies.places.made import made_log
from linnet.lab.studies.places.parameters import PlacesParameters
from linnet.lab.tables import Table
from linnet.places.channel.packet import Modifier
from linnet.places.channel.state_order import StateOrder
from linnet.places.multicast.fragmentation import Flag
from linnet.store.memory import MemoryStore

GAPS = Table(
    "place_gaps", 1, "place INT NOT NULL, first BIGINT NOT NULL, last BIGINT NOT NULL", ("place", "first")
)
GENERATION_FAULTS = Table(
    "place_generation_faults",
    1,
    "place INT NOT NULL, fragment BIGINT, fault STRING NOT NULL",
    ("place", "fragment"),
)
MESSAGES = Table(
    "place_messages",
    1,
    "place INT NOT NULL, message BIGINT, pieces BIGINT NOT NULL, upto BIGINT NOT NULL, "
    "whole BOOLEAN NOT NULL, text BIGINT",
    ("place", "message"),
)
"""Messages put together; of the text itself a fingerprint."""
STATES = Table(
    "place_states",
    1,
    "place INT NOT NULL, message BIGINT NOT NULL, variables BIGINT NOT NULL, digest STRING NOT NULL",
    ("place", "message"),
)
"""The state of a place behind a message: how many variables, and their hash."""
HASH_AUDIT = Table(
    "place_hash_audit",
    1,
    "place INT NOT NULL, message BIGINT, right BOOLEAN NOT NULL",
    ("place", "message"),
)
VERDICTS = Table(
    "place_verdicts",
    1,
    "place INT NOT NULL, nym BINARY, message BIGINT, generation BIGINT, replay BOOLEAN NOT NULL, "
    "verdict STRING NOT NULL",
    ("place", "nym", "message", "generation", "replay"),
)
SAMPLED = 3
"""Places whose states are also reckoned by the shipped classes."""
TO_STATE = ("taken", "parsed", "intervals", "states")
"""The stages from raw fragments to the state at a message."""
TESTED = 499
"""Each message whose number it divides is tested for everybody who was ever in."""


class Large(Struct, frozen=True):
    """The large log and what was made of it."""

    log: Made
    taken: Made
    parsed: Made
    intervals: Made
    gaps: Made
    generations: Made
    messages: Made
    states: Made
    hashes: Made
    verdicts: Made


def large(workshop: Workshop, parameters: PlacesParameters) -> Large:
    """Run every job that is still missing."""
    seed, places, messages = parameters.seed, parameters.places, parameters.messages
    told = {"places": places, "messages": messages}
    tasks = max(2, min(places, places * messages // 50_000))
    log = workshop.stage(
        "log",
        FRAGMENTS,
        lambda: made_log(workshop.spark, seed, places, messages, tasks),
        parameters=told,
        seed=seed,
    )
    taken = workshop.stage("taken", TAKEN, lambda: line.taken(log.frame), inputs=[log])
    state = int(Flag.STATE)
    parsed = workshop.stage(
        "parsed",
        PARSED,
        lambda: reassembly.parsed_of(reassembly.first_texts(taken.frame, state)),
        inputs=[taken],
    )
    intervals = workshop.stage(
        "intervals",
        INTERVALS,
        lambda: folding.intervals_of(folding.steps_of(parsed.frame)),
        inputs=[parsed],
    )
    return Large(
        log=log,
        taken=taken,
        parsed=parsed,
        intervals=intervals,
        **_told(workshop, taken, parsed, intervals, parameters),
    )


def _told(
    workshop: Workshop, taken: Made, parsed: Made, intervals: Made, parameters: PlacesParameters
) -> dict[str, Made]:
    return {
        "states": workshop.stage(
            "states",
            STATES,
            lambda: states(intervals.frame, asked(workshop.spark, parameters)),
            inputs=[intervals],
            parameters={"ids": parameters.ids},
        ),
        "hashes": workshop.stage(
            "hashes",
            HASH_AUDIT,
            lambda: folding.hash_faults(folding.steps_of(parsed.frame), intervals.frame),
            inputs=[parsed, intervals],
        ),
        "messages": workshop.stage("messages", MESSAGES, lambda: summarised(taken.frame), inputs=[taken]),
        "gaps": workshop.stage("gaps", GAPS, lambda: line.fragment_gaps(taken.frame), inputs=[taken]),
        "generations": workshop.stage(
            "generations", GENERATION_FAULTS, lambda: line.generation_faults(taken.frame), inputs=[taken]
        ),
        "verdicts": workshop.stage(
            "verdicts", VERDICTS, lambda: members.sampled_verdicts(taken.frame, TESTED), inputs=[taken]
        ),
    }


def wanted_ids(parameters: PlacesParameters) -> list[tuple[int, int]]:
    """Messages of each place, evenly spread, the last among them."""
    ids = [max(1, parameters.messages * (turn + 1) // parameters.ids) for turn in range(parameters.ids)]
    return [(place, message) for place in range(parameters.places) for message in dict.fromkeys(ids)]


def asked(spark: SparkSession, parameters: PlacesParameters) -> DataFrame:
    """The same as rows. Grain: (place, message)."""
    return spark.createDataFrame(wanted_ids(parameters), "place INT, message BIGINT")


def states(intervals: DataFrame, wanted: DataFrame) -> DataFrame:
    """The state behind each wanted message: its variables, counted and hashed. Grain: (place, message)."""
    found = folding.state_at(intervals, wanted).groupBy("place", "message")
    told = found.agg(F.count(F.lit(1)).alias("variables"), folding.digest().alias("digest"))
    joined = wanted.join(told, ["place", "message"], "left")
    return joined.select(
        "place",
        "message",
        F.coalesce("variables", F.lit(0)).alias("variables"),
        F.coalesce("digest", F.sha2(F.lit(b""), 256)).alias("digest"),
    )


def summarised(taken: DataFrame) -> DataFrame:
    """Messages put together, with a fingerprint of each text. Grain: (place, message)."""
    found = reassembly.messages_of(taken)
    return found.withColumn("text", F.xxhash64("text"))


def sampled_places(parameters: PlacesParameters) -> list[int]:
    """The places of the sample: the first, the middle, the last."""
    last = parameters.places - 1
    return sorted({0, last // 2, last})[:SAMPLED]


def sample(log: DataFrame, places: Iterable[int], parameters: PlacesParameters) -> dict[tuple[int, int], str]:
    """Hashes of states as the shipped classes come to them, from the same fragments."""
    ids = {message for _, message in wanted_ids(parameters)}
    found: dict[tuple[int, int], str] = {}
    for place in places:
        state = F.col("flags").bitwiseAND(int(Flag.STATE)) != 0
        rows = log.where((F.col("place") == place) & state).select("message", "body").collect()
        texts = {row.message: bytes(row.body) for row in rows}
        order = StateOrder(TopicId(place.to_bytes(32, "big")), MemoryStore().cells)
        for message in sorted({*texts, *ids}):
            read = reassembly.parse_text(texts[message]) if message in texts else None
            if read is not None and read[1] is not None:
                modifiers = [Modifier(**each) for each in read[3] or ()]  # type: ignore[arg-type]
                order.offered(message, read[1], modifiers, read[2])
            if message in ids:
                found[place, message] = order.state.digest().hex()
    return found
