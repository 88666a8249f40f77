"""The tables of the lab: their columns, each in the words of SQL, in one place.

Times are integer milliseconds and sums are integers, so that the same inputs give the same table bit for
bit on any number of machines. A change of columns or of their meaning is a new `version`: tables of
older versions are not read, but made again.
"""

from __future__ import annotations

from msgspec import Struct

from linnet.trace.records import SCHEMA


class Table(Struct, frozen=True):
    """One kind of table."""

    name: str
    version: int
    columns: str
    """DDL as Spark reads it."""
    grain: tuple[str, ...]
    """Columns that together name a row; empty if rows may repeat."""


MESSAGES = Table(
    "messages",
    1,
    "chat STRING NOT NULL, ts BIGINT NOT NULL, user STRING NOT NULL, chars INT NOT NULL, "
    "kind STRING NOT NULL, granularity STRING NOT NULL",
    (),
)
"""Who said how much when: `ts` in Unix milliseconds; `granularity` of its clock: ``ms``, ``s`` or ``min``.

`kind` is ``text``, ``image``, ``audio``, ``video``, ``file``, ``notice`` (joins, topic changes and the like).
"""

TEXTS = Table("texts", 1, MESSAGES.columns + ", text STRING NOT NULL", ())
"""Messages with what was said; only if somebody asked for it."""

QUARANTINE = Table(
    "quarantine",
    1,
    "source STRING NOT NULL, file STRING NOT NULL, line BIGINT NOT NULL, reason STRING NOT NULL, "
    "content STRING NOT NULL",
    (),
)
"""Rows that could not be used; `line` from 1; `content` is cut at 200, and empty unless text is kept."""

LATENCIES = Table(
    "latencies",
    1,
    "origin STRING NOT NULL, target STRING NOT NULL, oneway_us BIGINT NOT NULL",
    ("origin", "target"),
)
"""One-way delays between regions in microseconds."""

SESSIONS = Table(
    "sessions",
    1,
    "device STRING NOT NULL, start_ms BIGINT NOT NULL, end_ms BIGINT NOT NULL, week_ms BIGINT NOT NULL",
    ("device", "start_ms"),
)
"""When a device was online: [start, end) in milliseconds since the start of its trace of `week_ms`."""

SUBSCRIPTIONS = Table(
    "subscriptions", 1, "subscriber STRING NOT NULL, topic STRING NOT NULL", ("subscriber", "topic")
)

OUTCOMES = Table(
    "outcomes",
    1,
    "chat STRING NOT NULL, margin INT NOT NULL, mode STRING NOT NULL, measure STRING NOT NULL, "
    "bins ARRAY<INT> NOT NULL, counts ARRAY<BIGINT> NOT NULL",
    ("chat", "margin", "mode", "measure"),
)
"""How often something took how long, by the bins of `linnet.lab.bins`; a sum is a measure with the one bin 0.

`margin` is 1 to 5, or 0 where presence does not come from margins or the measure does not depend on it.
"""

POOLED = Table(
    "pooled",
    1,
    "population STRING NOT NULL, margin INT NOT NULL, mode STRING NOT NULL, measure STRING NOT NULL, "
    "bin INT NOT NULL, count BIGINT NOT NULL",
    ("population", "margin", "mode", "measure", "bin"),
)
"""The outcomes of all chats of a population together."""

INVERSIONS = Table(
    "inversions",
    1,
    "population STRING NOT NULL, margin INT NOT NULL, chats BIGINT NOT NULL, inverted BIGINT NOT NULL",
    ("population", "margin"),
)
"""Chats, and those of them that have more empty online periods with relays than without."""

PROFILES = Table(
    "profiles",
    1,
    "chat STRING NOT NULL, seconds BOOLEAN NOT NULL, members INT NOT NULL, messages BIGINT NOT NULL, "
    "chars BIGINT NOT NULL, duration_ms BIGINT NOT NULL, median_iat_ms BIGINT NOT NULL, "
    "max_iat_ms BIGINT NOT NULL, estimate_ms BIGINT NOT NULL, step INT NOT NULL",
    ("chat",),
)
"""What each chat is like, and how many steps of the selection it passes."""

_RUN = "chat STRING NOT NULL, margin INT NOT NULL, mode STRING NOT NULL, "

WINDOWS = Table(
    "windows",
    1,
    _RUN + "margin_ms BIGINT NOT NULL, stratum STRING NOT NULL, members INT NOT NULL, relays INT NOT NULL, "
    "ts ARRAY<BIGINT> NOT NULL, user ARRAY<INT> NOT NULL, chars ARRAY<INT> NOT NULL, "
    "member ARRAY<INT> NOT NULL, start_ms ARRAY<BIGINT> NOT NULL, end_ms ARRAY<BIGINT> NOT NULL",
    ("chat", "margin", "mode"),
)
"""Pieces of chats to be run through the protocol: messages, since the first of them, and who is online when.

`members` are those who speak in the piece, `relays` those that the whole chat would have.
"""

PROTOCOL_RUNS = Table(
    "protocol_runs",
    1,
    _RUN + "event ARRAY<INT> NOT NULL, receiver ARRAY<INT> NOT NULL, received_ms ARRAY<BIGINT> NOT NULL, "
    "held INT NOT NULL, instants INT NOT NULL, messages BIGINT NOT NULL",
    ("chat", "margin", "mode"),
)
"""What the protocol made of each window: every first reception, in the order of event and receiver."""

AGREEMENTS = Table(
    "agreements",
    1,
    _RUN + "stratum STRING NOT NULL, members INT NOT NULL, events INT NOT NULL, receptions INT NOT NULL, "
    "backfilled INT NOT NULL, unforeseen INT NOT NULL, held INT NOT NULL, differences INT NOT NULL, "
    "first STRING",
    ("chat", "margin", "mode"),
)
"""Model and protocol side by side (`linnet.lab.relays.agreement`); `first` says what differs first."""

TRACE = Table(
    "trace",
    1,
    ", ".join(f"{name} {kind}{'' if nullable else ' NOT NULL'}" for name, kind, nullable in SCHEMA),
    (),
)
"""What nodes recorded (`linnet.trace.records`). Counters begin anew in each run, so that they name no row."""

AUDIT_SIGNS = Table("audit_signs", 1, TRACE.columns, TRACE.grain)
"""The rows of a trace that are few and say much: starts, links, who takes part, what was published."""

_TALLIED = (
    "epoch INT NOT NULL, session INT NOT NULL, kind STRING NOT NULL, topic BINARY, device BINARY, "
    "reason STRING, note STRING, rows BIGINT NOT NULL, events BIGINT NOT NULL, bytes BIGINT NOT NULL, "
    "unplaced BIGINT NOT NULL, first_us BIGINT NOT NULL, last_us BIGINT NOT NULL, "
    "low_counter BIGINT NOT NULL, high_counter BIGINT NOT NULL"
)
_TALLY_GRAIN = ("node", "epoch", "session", "kind", "topic", "device", "reason", "note")

AUDIT_TALLY = Table("audit_tally", 1, f"node BINARY NOT NULL, {_TALLIED}", _TALLY_GRAIN)
"""How much of what each node recorded; `unplaced` rows are counts of a minute in which it started anew."""

AUDIT_NODES = Table(
    "audit_nodes",
    1,
    "number INT NOT NULL, node BINARY NOT NULL, rows BIGINT NOT NULL, first_us BIGINT NOT NULL, "
    "last_us BIGINT NOT NULL, epochs ARRAY<BIGINT> NOT NULL, sessions ARRAY<BIGINT> NOT NULL",
    ("number",),
)
"""Who wrote the trace. `epochs`: when counters began at 0; `sessions`: when it came online; sorted."""

AUDIT_ACTIVITY = Table("audit_activity", 1, f"node INT NOT NULL, {_TALLIED}", _TALLY_GRAIN)
"""The tally with nodes as numbers."""

AUDIT_LINKS = Table(
    "audit_links", 1, "node INT NOT NULL, ups BIGINT NOT NULL, peers BIGINT NOT NULL", ("node",)
)
"""How often links of a node came up, and to how many peers."""

AUDIT_CHAINS = Table(
    "audit_chains",
    1,
    "chain INT NOT NULL, topic BINARY NOT NULL, device BINARY NOT NULL",
    ("chain",),
)
"""Each device that said something in a topic."""

AUDIT_PUBLICATIONS = Table(
    "audit_publications",
    1,
    "chain INT NOT NULL, seq BIGINT NOT NULL, author INT NOT NULL, published_us BIGINT NOT NULL, "
    "event BINARY",
    ("chain", "seq"),
)
"""Events as their authors recorded them; `event` is null within a burst, but for its last."""

AUDIT_ARRIVALS = Table(
    "audit_arrivals",
    1,
    "chain INT NOT NULL, seq BIGINT NOT NULL, receiver INT NOT NULL, first_us BIGINT NOT NULL, "
    "hops INT NOT NULL, times INT NOT NULL, author INT, published_us BIGINT",
    ("chain", "seq", "receiver"),
)
"""First deliveries; `hops` is -1 if it came otherwise than over the overlay.

Without an author nobody recorded the publication.
"""

AUDIT_READERS = Table(
    "audit_readers",
    1,
    "topic BINARY NOT NULL, receiver INT NOT NULL, begin_us BIGINT NOT NULL, end_us BIGINT NOT NULL, "
    "lasting BOOLEAN NOT NULL, own BOOLEAN NOT NULL, "
    "switches ARRAY<STRUCT<us: BIGINT, on: BOOLEAN>> NOT NULL",
    ("topic", "receiver"),
)
"""Who takes part in a topic from when to when; `lasting` if what was missed while away is owed too.

`switches`, in order: when it subscribed and unsubscribed or started anew; empty if the trace does not tell.
`own` if it is handed what it publishes itself.
"""

AUDIT_DELAYS = Table(
    "audit_delays",
    2,
    "topic BINARY NOT NULL, receiver INT NOT NULL, standing STRING NOT NULL, bin INT NOT NULL, early INT, "
    "count BIGINT NOT NULL, repeated BIGINT NOT NULL, least_us BIGINT, most_us BIGINT, sum_us BIGINT",
    ("topic", "receiver", "standing", "bin", "early"),
)
"""Deliveries by how long they took; `standing` is ``owed``, ``history`` or ``unpublished``.

`early` is the author if the delivery was recorded before the publication, and null otherwise.
"""

AUDIT_QUANTILES = Table(
    "audit_quantiles",
    1,
    "topic STRING NOT NULL, receiver STRING NOT NULL, percent INT NOT NULL, us BIGINT",
    ("topic", "receiver", "percent"),
)
"""Delays by nearest rank over all that was owed, exactly; null if so many did not arrive.

An empty receiver stands for all of a topic, and an empty topic for all of them.
"""

AUDIT_HOPS = Table(
    "audit_hops",
    1,
    "topic BINARY NOT NULL, hops INT NOT NULL, count BIGINT NOT NULL",
    ("topic", "hops"),
)
"""Over how many links first deliveries came."""

AUDIT_UNSERVED = Table(
    "audit_unserved",
    1,
    "chain INT NOT NULL, topic BINARY NOT NULL, seq BIGINT NOT NULL, author INT NOT NULL, "
    "published_us BIGINT NOT NULL, event BINARY, served BIGINT NOT NULL",
    ("chain", "seq"),
)
"""Events with fewer receivers than their topic has readers."""

AUDIT_MISSING = Table(
    "audit_missing",
    1,
    "topic BINARY NOT NULL, device BINARY NOT NULL, seq BIGINT NOT NULL, event BINARY, author INT NOT NULL, "
    "receiver INT NOT NULL, published_us BIGINT NOT NULL, fate STRING NOT NULL, kind STRING, reason STRING",
    ("topic", "device", "seq", "receiver"),
)
"""Events that a reader was not handed, each with its fate (`linnet.lab.audit.fates`)."""

AUDIT_COMPLETENESS = Table(
    "audit_completeness",
    1,
    "topic STRING NOT NULL, receiver STRING NOT NULL, owed BIGINT NOT NULL, delivered BIGINT NOT NULL, "
    "stored BIGINT NOT NULL, explained BIGINT NOT NULL, pending BIGINT NOT NULL, cut BIGINT NOT NULL, "
    "lost BIGINT NOT NULL, not_owed BIGINT NOT NULL, history BIGINT NOT NULL, unpublished BIGINT NOT NULL, "
    "repeated BIGINT NOT NULL, duplicates BIGINT NOT NULL, gaps_filled BIGINT NOT NULL, "
    "resent BIGINT NOT NULL",
    ("topic", "receiver"),
)
"""What was owed to each reader of a topic, and what came of it."""

STREAM_COUNTS = Table(
    "stream_counts",
    1,
    "mode STRING NOT NULL, size INT NOT NULL, degree INT NOT NULL, repeat INT NOT NULL, "
    "measure STRING NOT NULL, bin INT NOT NULL, count BIGINT NOT NULL",
    ("mode", "size", "degree", "repeat", "measure", "bin"),
)
"""What a simulated stream or a graph came to: histograms, and sums in bin 0 (`linnet.sim.streams.tally`)."""

STREAM_PAIRS = Table("stream_pairs", 1, "a INT NOT NULL, b INT NOT NULL, graphs BIGINT NOT NULL", ("a", "b"))
"""In how many graphs the nodes that joined as number a and b, with a < b, were neighbours."""

OVERLAY_COUNTS = Table(
    "overlay_counts",
    1,
    "experiment STRING NOT NULL, setting STRING NOT NULL, repeat INT NOT NULL, measure STRING NOT NULL, "
    "bin INT NOT NULL, count BIGINT NOT NULL",
    ("experiment", "setting", "repeat", "measure", "bin"),
)
"""What a run without trackers came to: curves by bin, single numbers in bin 0. Ratios are millionths."""

WATCH_OPEN = Table(
    "watch_open",
    1,
    "topic BINARY NOT NULL, device BINARY NOT NULL, seq BIGINT NOT NULL, role STRING NOT NULL, "
    "node BINARY NOT NULL, us BIGINT NOT NULL, times BIGINT NOT NULL",
    ("topic", "device", "seq", "role", "node"),
)
"""Events that may still be on their way: ``published`` by a node, ``delivered`` at others."""

WATCH_SUMS = Table(
    "watch_sums",
    1,
    "topic BINARY, name STRING NOT NULL, detail STRING NOT NULL, bin INT NOT NULL, value BIGINT NOT NULL",
    ("topic", "name", "detail", "bin"),
)
"""What was counted for good; `bin` is that of delays, and 0 of everything else."""

WATCH_READERS = Table(
    "watch_readers",
    1,
    "topic BINARY NOT NULL, node BINARY NOT NULL, begin_us BIGINT NOT NULL, switched_us BIGINT NOT NULL, "
    "is_on BOOLEAN NOT NULL, own BOOLEAN NOT NULL",
    ("topic", "node"),
)
"""Who takes part in a topic, since when, and whether it did when it last said so."""

WATCH_NODES = Table(
    "watch_nodes",
    1,
    "node BINARY NOT NULL, last_us BIGINT NOT NULL, rows BIGINT NOT NULL, is_up BOOLEAN NOT NULL",
    ("node",),
)
"""When each node was seen last, and whether it had said goodbye then."""

_GROUP = (
    "operation STRING NOT NULL, acks STRING NOT NULL, batch INT NOT NULL, size INT NOT NULL, "
    "repeat INT NOT NULL, role STRING NOT NULL, "
)
_GROUP_GRAIN = ("operation", "acks", "batch", "size", "repeat", "role")

GROUP_COUNTS = Table(
    "group_counts", 1, _GROUP + "measure STRING NOT NULL, count BIGINT NOT NULL", (*_GROUP_GRAIN, "measure")
)
"""What an operation of a group of `size` members sends, and what each role calls for it: bit-equal."""

GROUP_TIMES = Table(
    "group_times",
    1,
    _GROUP + "part STRING NOT NULL, clients INT NOT NULL, events BIGINT NOT NULL, value BIGINT NOT NULL",
    (*_GROUP_GRAIN, "part"),
)
"""Measurements: nanoseconds of processor time that all `clients` of a role took for `events` together.

Of the role ``machine`` the load average, in thousandths. Two runs differ in these, and in nothing else.
"""

GROUP_AUTHORS = Table(
    "group_authors",
    1,
    "operation STRING NOT NULL, size INT NOT NULL, what STRING NOT NULL, runs BIGINT NOT NULL, "
    "total BIGINT, least BIGINT, most BIGINT",
    ("operation", "size", "what"),
)
"""Raw measurements of the published benchmark of groups, added up: bytes, or nanoseconds of a role."""
