"""``linnet play``: the command."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.options import JsonOption, Options, with_examples
from linnet.cli.output import progress_bar, say, say_json, say_table, warn
from linnet.cli.sim.runner import simulation

if TYPE_CHECKING:
    from linnet.sim.rooms.chats import Rescaling, Said
    from linnet.sim.rooms.experiments import Expectation, Experiment
    from linnet.sim.rooms.traffic import MergedLog, Played, Traffic


class ScaleOption(StrEnum):
    """The ways to map logged times of a chat back."""

    OFFSET = "offset"
    STRETCH = "stretch"


What = Annotated[
    str,
    typer.Argument(metavar="WHAT", help="An experiment (see: linnet play list), a traffic file, or a chat."),
]


@dataclass(frozen=True)
class PlayOptions(Options):
    """The options of playing traffic."""

    live: Annotated[
        bool, typer.Option("--live", help="On real nodes, each a process, instead of simulated.")
    ] = False
    seed: Annotated[int, typer.Option(min=0, help="Of the simulation, and of what is said in a chat.")] = 1
    latency: Annotated[
        str, typer.Option(metavar="TABLE", help="Of the simulation: aws, constant:MS, or a table.")
    ] = "constant:20"
    margin: Annotated[
        str, typer.Option(metavar="TIME", help="In a chat: online so long before and after each message.")
    ] = "30s"
    relays: Annotated[int, typer.Option(min=0, max=8, help="Relays of a chat.")] = 1
    scale: Annotated[
        ScaleOption | None,
        typer.Option("--scale", help="Show a chat's own times: its pauses were cut at 10 s."),
    ] = None
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", dir_okay=False, help="Write the log here, as CSV or JSON.")
    ] = None
    keep: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="With --live: leave homes and traces here; must be new."),
    ] = None
    as_json: JsonOption = False


@with_examples(
    "linnet play list",
    "linnet play fe1",
    "linnet play fe4 --live",
    "linnet play traffic.json --csv --out log.csv",
    "linnet play chat.csv --margin 21s --relays 1 --scale stretch",
)
def play(what: What, options: PlayOptions) -> None:
    """Play traffic in a room, and print the merged log of all its nodes.

    Peers come online, send, go offline and are banned; relays hold messages for those who are away. For an
    experiment of Schichtholz 2024 the published outcome is checked as well; exits 1 if that fails.
    """
    with simulation():
        from linnet.sim.rooms.experiments import names

        if what == "list":
            say("\n".join(names()))
            return
        experiment, chat = _find_experiment(what, options)
        with progress_bar(options.as_json) as tell:
            player = _live_player(options, tell) if options.live else _sim_player(options, tell)
            runs = [player(traffic) for traffic in experiment.runs]
        expectations = experiment.check(runs)
        logs = [run.log for run in runs]
        if options.scale is not None:
            logs = [_scaled(run, chat, options.margin, options.scale) for run in runs]
    if options.as_json:
        say_json(_result(experiment, runs, logs, expectations))
    else:
        _say(runs, logs, expectations, options.as_csv)
    if options.out is not None:
        _write(options.out, logs)
    failed = [each.what for each in expectations if not each.holds]
    if failed:
        raise Failure(f"{experiment.name} failed: {'; '.join(failed)}")


def _find_experiment(what: str, options: PlayOptions) -> tuple[Experiment, list[Said]]:
    """Find an experiment by its name, or make one from a file, without expectations."""
    from linnet.core.errors import ConfigError
    from linnet.sim.rooms.chats import chat_traffic, parse_chat
    from linnet.sim.rooms.experiments import Experiment, experiment, names
    from linnet.sim.rooms.traffic import duration, parse_traffic

    if what in names():
        return experiment(what), []
    path = Path(what)
    try:
        text = path.read_text()
    except FileNotFoundError as error:
        raise ConfigError(f"{what}: neither a file nor an experiment; see: linnet play list") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{what}: cannot be read: {error}") from error
    chat: list[Said] = []
    if path.suffix.lower() == ".csv":
        chat = parse_chat(text, path.name)
        traffic = chat_traffic(chat, _positive(duration(options.margin)), options.seed, options.relays)
    else:
        traffic = parse_traffic(text, path.name)
    return Experiment(path.name, path.name, (traffic,), lambda runs: []), chat


def _positive(seconds: float) -> float:
    if seconds <= 0:
        raise Failure("--margin is above 0", ExitCode.USAGE)
    return seconds


def _sim_player(options: PlayOptions, tell: Callable[[float, str], None]) -> Callable[[Traffic], Played]:
    from linnet.sim.rooms.traffic import play as play_simulated

    return lambda traffic: play_simulated(traffic, options.seed, options.latency, tell)


def _live_player(options: PlayOptions, tell: Callable[[float, str], None]) -> Callable[[Traffic], Played]:
    from linnet.cli.play.nodes import play_live

    def played(traffic: Traffic) -> Played:
        with _directory(options.keep) as directory:
            return play_live(traffic, directory, tell)

    return played


@contextlib.contextmanager
def _directory(keep: Path | None) -> Iterator[Path]:
    """Yield a new directory for the homes of a run; it is removed unless it is to be kept."""
    if keep is not None:
        place = next(each for n in range(1, 1000) if not (each := keep / f"run{n}").exists())
        try:
            place.mkdir(mode=0o700, parents=True)
        except OSError as error:
            raise Failure(f"{place}: {error.strerror}; choose another directory", ExitCode.USAGE) from error
        yield place.resolve()
        return
    directory = Path(tempfile.mkdtemp(prefix="linnet-play-"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _scaled(run: Played, chat: list[Said], margin: str, scale: ScaleOption) -> MergedLog:
    """Return a log in the times of its chat."""
    from msgspec.structs import replace

    from linnet.sim.rooms.chats import Scale, rescaling, schedule
    from linnet.sim.rooms.traffic import duration

    if not chat:
        raise Failure("--scale is for chats: nothing else has times of its own", ExitCode.USAGE)
    times = [outcome.at for outcome in run.outcomes]
    mapping: Rescaling = rescaling(schedule(chat, duration(margin)), times)
    entries = (replace(e, time=mapping.map(e.time, Scale(scale.value))) for e in run.log.entries)
    return replace(run.log, entries=tuple(entries))


def _result(
    experiment: Experiment,
    runs: Sequence[Played],
    logs: Sequence[MergedLog],
    expectations: Sequence[Expectation],
) -> dict[str, object]:
    """Return the result for programs."""
    return {
        "experiment": experiment.name,
        "ok": all(each.holds for each in expectations),
        "expectations": expectations,
        "runs": [
            {
                "peers": run.traffic.peers,
                "relays": run.traffic.relays,
                "outcomes": run.outcomes,
                "log": log.to_builtins(),
                "trace_sha256": run.trace_sha256,
            }
            for run, log in zip(runs, logs, strict=True)
        ],
    }


def _say(
    runs: Sequence[Played], logs: Sequence[MergedLog], expectations: Sequence[Expectation], as_csv: bool
) -> None:
    from linnet.sim.rooms.traffic import COLUMNS

    for run, log in zip(runs, logs, strict=True):
        if as_csv:
            say(log.to_csv().rstrip("\n"))
        else:
            columns = (f"{COLUMNS[0]} ", *COLUMNS[1:4], f"{COLUMNS[4]} ")
            say_table(columns, [entry.cells() for entry in log.entries])
        for outcome in run.outcomes:
            if outcome.refused is not None:
                warn(f"{outcome.user} could not {outcome.action}: {outcome.refused}")
    tell = warn if as_csv else say
    for each in expectations:
        tell(f"{'holds' if each.holds else 'FAILS'}  {each.what}")


def _write(out: Path, logs: Sequence[MergedLog]) -> None:
    import msgspec

    if out.suffix.lower() == ".json":
        text = msgspec.json.encode([log.to_builtins() for log in logs]).decode()
    else:
        text = "\n".join(log.to_csv() for log in logs)
    try:
        out.write_text(text)
    except OSError as error:
        raise Failure(f"{out}: cannot be written: {error.strerror or error}") from error
