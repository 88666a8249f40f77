"""The studies of the lab about streams, overlays, content, groups, places and attacks, and of matching."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.lab.options import OutOption, SeedOption, SparkOptions, read_numbers
from linnet.cli.options import with_examples
from linnet.cli.sim.runner import LatencyOption

if TYPE_CHECKING:
    from linnet.lab.report.parts import Report
    from linnet.lab.stages import Workshop

Events = Annotated[int, typer.Option(min=1, help="Events.")]
Subscriptions = Annotated[int, typer.Option(min=1, help="Subscriptions.")]
Data = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        exists=True,
        file_okay=False,
        help="Real streams, known by the names of their files: see docs/lab/matching.md.",
    ),
]
Plain = Annotated[
    int, typer.Option(min=0, help="Events, and subscriptions, of the plain join beside it; 0: none.")
]
Sample = Annotated[int, typer.Option(min=1, help="Events that the shipped index is asked about as well.")]
Capacity = Annotated[int, typer.Option(min=10, help="Predicates of one piece, about.")]


@with_examples(
    "linnet lab match --events 100000 --subscriptions 100000 --out matched",
    "linnet lab match --events 1000000 --subscriptions 1000000 --data streams --out matched --json",
)
def match(
    out: OutOption,
    events: Events = 100_000,
    subscriptions: Subscriptions = 100_000,
    data: Data = None,
    plain: Plain = 1_000,
    sample: Sample = 100,
    capacity: Capacity = 20_000,
    seed: SeedOption = 1,
    *,
    spark: SparkOptions,
) -> None:
    """Match events and subscriptions on Spark, beside the index of a node and a plain join.

    Events are records of real streams (--data) or drawn; subscriptions are drawn around their values. Every
    predicate lives at its rarest attribute, in a piece that one task searches. Exits 1 if a match differs
    from what the index of a node finds. A run that was interrupted goes on where it was.
    """

    def run(shop: Workshop) -> Report:
        from linnet.lab.matching.job import match as study
        from linnet.lab.matching.parameters import MatchParameters

        parameters = MatchParameters(
            events=events,
            subscriptions=subscriptions,
            data="" if data is None else str(data),
            plain=plain,
            sample=sample,
            capacity=capacity,
            seed=seed,
        ).checked()
        return study(shop, parameters)

    spark.run_study(run, out)


Sizes = Annotated[str, typer.Option(metavar="N,N,...", help="Nodes in the stream.")]
Repeats = Annotated[int, typer.Option(min=1, help="Runs of each size and mode, with other seeds.")]
Modes = Annotated[str, typer.Option(metavar="MODE,...", help="Some of counter, naive, aware.")]
Degree = Annotated[int, typer.Option(min=3, max=64, help="Neighbours of a node.")]
Messages = Annotated[int, typer.Option(min=1, help="Messages in each run.")]
Throttle = Annotated[
    float, typer.Option(metavar="SECONDS", min=0.0, help="Between naive joins above 1,000 nodes.")
]
ThrottledRepeats = Annotated[int, typer.Option(min=1, help="Runs of these at most; they take longest.")]
Degrees = Annotated[
    str, typer.Option(metavar="D,D,...", help="Degrees of the runs about redundancy; '' for none.")
]
PairNodes = Annotated[int, typer.Option(max=2000, help="Nodes of the graphs whose randomness is looked at.")]
PairGraphs = Annotated[int, typer.Option(min=0, help="How many of these; 0 for none.")]
Large = Annotated[
    int, typer.Option(min=0, help="Estimate graphs up to this size from sampled sources; 0: none.")
]
Sources = Annotated[int, typer.Option(min=1, help="How many sources are sampled.")]


@with_examples(
    "linnet lab study streams --sizes 32,64 --repeats 2 --out streams",
    "linnet lab study streams --out streams",
    "linnet lab study streams --out streams --latency delays.csv --modes counter,aware",
    "linnet lab study streams --out streams --large 100000",
)
def streams(
    out: OutOption,
    sizes: Sizes = "32,64,128,256,512,1024,2048",
    repeats: Repeats = 10,
    modes: Modes = "counter,naive,aware",
    degree: Degree = 4,
    messages: Messages = 50,
    latency: LatencyOption = "aws",
    throttle: Throttle = 0.05,
    throttled_repeats: ThrottledRepeats = 2,
    degrees: Degrees = "4,6,8,10,12,14,16",
    pair_nodes: PairNodes = 200,
    pair_graphs: PairGraphs = 200,
    large: Large = 10_000,
    sources: Sources = 32,
    seed: SeedOption = 1,
    *,
    spark: SparkOptions,
) -> None:
    """Simulate stream overlays of the shipped nodes, and measure what floods through them.

    Delay, predictability, relative delay penalty, hops, redundancy, randomness and growth, for both control
    protocols and for overlays with near links, beside the published figures. A study that was interrupted
    goes on where it was.
    """
    wanted_sizes, wanted_degrees = read_numbers("--sizes", sizes), read_numbers("--degrees", degrees)

    def run(shop: Workshop) -> Report:
        from linnet.lab.studies.streams.parameters import StreamsParameters
        from linnet.lab.studies.streams.study import study

        return study(
            shop,
            StreamsParameters(
                sizes=wanted_sizes,
                repeats=repeats,
                modes=tuple(mode.strip() for mode in modes.split(",") if mode.strip()),
                degree=degree,
                messages=messages,
                throttle=throttle,
                throttled_repeats=throttled_repeats,
                latency=latency,
                degrees=wanted_degrees,
                pair_nodes=pair_nodes,
                pair_graphs=pair_graphs,
                large=large,
                sources=sources,
                seed=seed,
            ),
        )

    spark.run_study(run, out)


OverlayData = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        exists=True,
        file_okay=False,
        help="Real subscriptions, phones and latencies: see docs/lab/overlay-study.md.",
    ),
]
Nodes = Annotated[int, typer.Option(min=16, max=5000, help="Nodes of each overlay.")]
TopicCount = Annotated[int, typer.Option("--topics", min=2, max=5000, help="Topics of an overlay at most.")]
OverlaySubscriptions = Annotated[
    int, typer.Option(min=1, max=1000, help="Topics of a node, or of a user at most.")
]
Rounds = Annotated[int, typer.Option(min=5, help="Rounds of gossip after the warm-up.")]
OverlayRepeats = Annotated[int, typer.Option(min=1, help="Runs of each overlay, with other seeds.")]
AttackNodes = Annotated[int, typer.Option(min=50, help="Nodes of the runs that attack peer sampling.")]
AttackRounds = Annotated[int, typer.Option(min=10, help="Rounds of these.")]
AttackRepeats = Annotated[int, typer.Option(min=1, help="Runs of each of these, with other seeds.")]
FilterUsers = Annotated[int, typer.Option(min=20, max=2000, help="Users whose filters are compared.")]
RingSizes = Annotated[str, typer.Option(metavar="N,N,...", help="Members of the large rings.")]
Growing = Annotated[
    str, typer.Option(metavar="N,N,...", help="Subscriptions of a node in the runs about degrees.")
]
Scale = Annotated[
    int, typer.Option(min=0, max=20_000, help="One overlay of so many nodes and topics; 0: none. Takes long.")
]


@with_examples(
    "linnet lab study overlay --out overlay",
    "linnet lab study overlay --out overlay --data sets --nodes 200 --repeats 3",
    "linnet lab study overlay --out overlay --scale 10000 --subscriptions 10",
)
def overlay(
    out: OutOption,
    data: OverlayData = None,
    nodes: Nodes = 120,
    topics: TopicCount = 60,
    subscriptions: OverlaySubscriptions = 8,
    rounds: Rounds = 60,
    repeats: OverlayRepeats = 1,
    attack_nodes: AttackNodes = 400,
    attack_rounds: AttackRounds = 400,
    attack_repeats: AttackRepeats = 1,
    filter_users: FilterUsers = 200,
    ring_sizes: RingSizes = "100,1000,10000",
    growing: Growing = "2,8,32",
    scale: Scale = 0,
    seed: SeedOption = 1,
    *,
    spark: SparkOptions,
) -> None:
    """Attack, disturb and measure overlays without trackers, and hold them against a tracker's.

    Liars' share of views for the shipped sampler and published ones, what randomised filters find and tell,
    hops and reach of rings, whole overlays with liars and churn, failures, a partition, newcomers, and a
    table that tells which overlay to choose. A study that was interrupted goes on where it was.
    """
    sizes, grown = read_numbers("--ring-sizes", ring_sizes), read_numbers("--growing", growing)

    def run(shop: Workshop) -> Report:
        from linnet.lab.studies.overlay.parameters import OverlayParameters
        from linnet.lab.studies.overlay.study import study

        return study(
            shop,
            OverlayParameters(
                data="" if data is None else str(data),
                nodes=nodes,
                topics=topics,
                subscriptions=subscriptions,
                rounds=rounds,
                repeats=repeats,
                attack_nodes=attack_nodes,
                attack_rounds=attack_rounds,
                attack_repeats=attack_repeats,
                filter_users=filter_users,
                ring_sizes=sizes,
                growing=grown,
                scale=scale,
                seed=seed,
            ),
        )

    spark.run_study(run, out)


ContentNodes = Annotated[
    str, typer.Option(metavar="N,N,...", help="Nodes of each network; published are 60.")
]
Staged = Annotated[int, typer.Option(min=0, help="Nodes of the run in four stages; 0: none.")]
Backups = Annotated[str, typer.Option(metavar="F,F,...", help="Backups of a node in that run, each once.")]
Long = Annotated[int, typer.Option(min=0, help="Nodes of the long run, where some leave; 0: none.")]
ContentRepeats = Annotated[int, typer.Option(min=1, help="Runs of each scenario, with other seeds.")]


@with_examples(
    "linnet lab study content --out content",
    "linnet lab study content --out content --nodes 60,250 --repeats 3",
)
def content(
    out: OutOption,
    nodes: ContentNodes = "60",
    staged: Staged = 75,
    backups: Backups = "1,2,3,5",
    long: Long = 30,
    repeats: ContentRepeats = 1,
    seed: SeedOption = 1,
    *,
    spark: SparkOptions,
) -> None:
    """Run the published scenarios of content with the shipped machines, and hold them against the thesis.

    Every scenario with every variant that `linnet sim content` knows, four stages with several numbers of
    backups, and a long run; what is missing, what comes twice,
    latencies (simulated: no processor in it) and costs, beside the published ones. A study that was
    interrupted goes on where it was.
    """
    sizes, copies = read_numbers("--nodes", nodes), read_numbers("--backups", backups)

    def run(shop: Workshop) -> Report:
        from linnet.lab.studies.content.parameters import ContentParameters
        from linnet.lab.studies.content.study import study

        parameters = ContentParameters(
            nodes=sizes, staged=staged, backups=copies, long=long, repeats=repeats, seed=seed
        ).checked()
        return study(shop, parameters)

    spark.run_study(run, out)


GroupSizes = Annotated[str, typer.Option(metavar="N,N,...", help="Members of the group.")]
GroupRepeats = Annotated[int, typer.Option(min=1, help="Timed runs of each operation and size.")]
Scaling = Annotated[int, typer.Option(min=0, help="Time updates in groups up to this size; 0: none.")]
Batch = Annotated[int, typer.Option(min=1, help="Updates that are acknowledged one by one, and at once.")]
Missed = Annotated[int, typer.Option(min=0, help="Updates that a member catches up with; 0: none.")]
Fuzz = Annotated[int, typer.Option(min=0, help="Random groups that are run; 0: none.")]
GroupData = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        exists=True,
        file_okay=False,
        help="Where traffic.csv and time.csv.gz of the published benchmark lie, or below it.  "
        "[default: LINNET_DATA, if they are there]",
        show_default=False,
    ),
]


@with_examples(
    "linnet lab study groups --sizes 8,16,32 --repeats 1 --scaling 0 --missed 4 --out groups",
    "linnet lab study groups --out groups",
    "linnet lab study groups --out groups --data dcgka",
)
def groups(
    out: OutOption,
    data: GroupData = None,
    sizes: GroupSizes = "8,11,16,22,32,45,64,90,128",
    repeats: GroupRepeats = 3,
    scaling: Scaling = 256,
    batch: Batch = 8,
    missed: Missed = 32,
    fuzz: Fuzz = 10,
    seed: SeedOption = 1,
    *,
    spark: SparkOptions,
) -> None:
    """Measure group operations of the shipped code: bytes, processor time, keys, beside the published ones.

    Creating, adding, removing, updating and speaking in groups of growing size, with every acknowledgement;
    catching up, states, views, random groups. Limits of bytes must hold; limits of time are told. A study
    that was interrupted goes on where it was.
    """
    wanted = read_numbers("--sizes", sizes)

    def run(shop: Workshop) -> Report:
        from linnet.lab.studies.groups.parameters import GroupsParameters
        from linnet.lab.studies.groups.study import study

        parameters = GroupsParameters(
            sizes=wanted, repeats=repeats, scaling=scaling, batch=batch, missed=missed, fuzz=fuzz, seed=seed
        ).checked()
        return study(shop, parameters, _raw(data))

    spark.run_study(run, out)


def _raw(data: Path | None) -> Path | None:
    """The folder of the raw measurements. Asked for and not there is an error; else the printed tables do."""
    from linnet.lab.studies.groups.authors import TIME, TRAFFIC, find_authors

    known = os.environ.get("LINNET_DATA")
    place = data or (Path(known) if known else None)
    found = None if place is None else find_authors(place)
    if found is None and data is not None:
        raise Failure(f"there is no {TRAFFIC} with {TIME} in {data} or below it", ExitCode.USAGE)
    return found


Logs = Annotated[int, typer.Option(min=1, help="Random logs that are looked at in both ways.")]
Fragments = Annotated[int, typer.Option(min=0, help="Fragments of the log that is measured; 0: none.")]
Ids = Annotated[int, typer.Option(min=1, help="Messages of each place whose state is wanted.")]


@with_examples(
    "linnet lab study places --logs 50 --fragments 0 --out places",
    "linnet lab study places --out places",
    "linnet lab study places --out places --fragments 10000000",
)
def places(
    out: OutOption,
    logs: Logs = 300,
    fragments: Fragments = 1_000_000,
    ids: Ids = 4,
    seed: SeedOption = 1,
    *,
    spark: SparkOptions,
) -> None:
    """Put messages together, list gaps, work out states, audit hashes and generations, test memberships.

    Over random logs that the shipped voice said and something happened to, beside the shipped classes, which
    must agree; and over a large log, where each job is timed. A study that was interrupted goes on where it
    was.
    """

    def run(shop: Workshop) -> Report:
        from linnet.lab.studies.places.parameters import PlacesParameters
        from linnet.lab.studies.places.study import study

        parameters = PlacesParameters(logs=logs, fragments=fragments, ids=ids, seed=seed).checked()
        return study(shop, parameters)

    spark.run_study(run, out)


AttackNames = Annotated[
    str, typer.Option("--attacks", metavar="NAME,...", help="Some attacks only, by the names of linnet sim.")
]
AttackRuns = Annotated[
    int, typer.Option("--repeats", min=1, max=1000, help="Runs of each, with other seeds.")
]


@with_examples(
    "linnet lab study attacks --out attacks",
    "linnet lab study attacks --attacks silent,isolate --repeats 3 --out attacks",
)
def attacks(
    out: OutOption,
    names: AttackNames = "",
    repeats: AttackRuns = 5,
    seed: SeedOption = 1,
    *,
    spark: SparkOptions,
) -> None:
    """Run every simulated attack over many seeds, beside the same runs without it.

    Which deliveries between honest nodes come all the same, when somebody notices, and what it costs both
    sides; and whether honest nodes in trouble are taken for attackers. Exits 1 if a bound does not hold. A
    study that was interrupted goes on where it was.
    """
    wanted = tuple(name.strip() for name in names.split(",") if name.strip())

    def run(shop: Workshop) -> Report:
        from linnet.lab.studies.attacks.parameters import AttacksParameters
        from linnet.lab.studies.attacks.study import study

        return study(shop, AttacksParameters(names=wanted, repeats=repeats, seed=seed).checked())

    spark.run_study(run, out)
