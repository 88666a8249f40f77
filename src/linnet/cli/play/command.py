"""``linnet play``: the command."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.options import JsonOption, examples
from linnet.cli.output import say, say_json, say_table, warn
from linnet.cli.simulating import progress_bar, simulation

if TYPE_CHECKING:
    from linnet.sim.chats import Rescaling, Said
    from linnet.sim.experiments import Expectation, Experiment
    from linnet.sim.merged_log import MergedLog
    from linnet.sim.play import Played
    from linnet.sim.traffic import Traffic

EPILOG = examples(
    "linnet play list",
    "linnet play fe1",
    "linnet play fe4 --live",
    "linnet play traffic.json --csv --out log.csv",
    "linnet play chat.csv --margin 21s --relays 1 --scale stretch",
)


class ScaleOption(StrEnum):
    """How logged times of a chat are mapped back."""

    OFFSET = "offset"
    STRETCH = "stretch"


What = Annotated[
    str,
    typer.Argument(metavar="WHAT", help="An experiment (see: linnet play list), a traffic file, or a chat."),
]
Live = Annotated[bool, typer.Option("--live", help="On real nodes, each a process, instead of simulated.")]
Seed = Annotated[int, typer.Option(min=0, help="Of the simulation, and of what is said in a chat.")]
Latency = Annotated[
    str, typer.Option(metavar="TABLE", help="Of the simulation: aws, constant:MS, or a table.")
]
Margin = Annotated[
    str, typer.Option(metavar="TIME", help="In a chat: online so long before and after each message.")
]
Relays = Annotated[int, typer.Option(min=0, max=8, help="Relays of a chat.")]
Scaled = Annotated[
    ScaleOption | None, typer.Option("--scale", help="Show a chat's own times: its pauses were cut at 10 s.")
]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print CSV.")]
Out = Annotated[
    Path | None, typer.Option(metavar="FILE", dir_okay=False, help="Write the log here, as CSV or JSON.")
]
Keep = Annotated[
    Path | None, typer.Option(metavar="DIR", help="With --live: leave homes and traces here; must be new.")
]


def play(
    what: What,
    live: Live = False,
    seed: Seed = 1,
    latency: Latency = "constant:20",
    margin: Margin = "30s",
    relays: Relays = 1,
    scale: Scaled = None,
    as_csv: AsCsv = False,
    out: Out = None,
    keep: Keep = None,
    as_json: JsonOption = False,
) -> None:
    """Play traffic in a room, and print the merged log of all its nodes.

    Peers come online, speak, go, are banned; relays hold what is said for those who are away. An
    experiment of Schichtholz 2024 also says what has to come of it; exits 1 if that fails.
    """
    with simulation():
        from linnet.sim.experiments import names

        if what == "list":
            say("\n".join(names()))
            return
        experiment, chat = _found(what, margin, relays, seed)
        with progress_bar(as_json) as tell:
            player = _live_player(keep, tell) if live else _sim_player(seed, latency, tell)
            runs = [player(traffic) for traffic in experiment.runs]
        expectations = experiment.check(runs)
        logs = [run.log for run in runs]
        if scale is not None:
            logs = [_scaled(run, chat, margin, scale) for run in runs]
    _show(experiment, runs, logs, expectations, as_csv, as_json)
    if out is not None:
        _write(out, logs)
    failed = [each.what for each in expectations if not each.holds]
    if failed:
        raise Failure(f"{experiment.name} failed: {'; '.join(failed)}")


def _found(what: str, margin: str, relays: int, seed: int) -> tuple[Experiment, list[Said]]:
    """What is to be played: an experiment by its name, or a file of which nothing is expected."""
    from linnet.core.errors import ConfigError
    from linnet.sim.chats import chat_traffic, parse_chat
    from linnet.sim.experiments import Experiment, experiment, names
    from linnet.sim.traffic import duration, parse_traffic

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
        traffic = chat_traffic(chat, _positive(duration(margin)), seed, relays)
    else:
        traffic = parse_traffic(text, path.name)
    return Experiment(path.name, path.name, (traffic,), lambda runs: []), chat


def _positive(seconds: float) -> float:
    if seconds <= 0:
        raise Failure("--margin is above 0", ExitCode.USAGE)
    return seconds


def _sim_player(seed: int, latency: str, tell: Callable[[float, str], None]) -> Callable[[Traffic], Played]:
    from linnet.sim.play import play as play_simulated

    return lambda traffic: play_simulated(traffic, seed, latency, tell)


def _live_player(keep: Path | None, tell: Callable[[float, str], None]) -> Callable[[Traffic], Played]:
    from linnet.cli.play.live import play_live

    def played(traffic: Traffic) -> Played:
        with _directory(keep) as directory:
            return play_live(traffic, directory, tell)

    return played


@contextlib.contextmanager
def _directory(keep: Path | None) -> Iterator[Path]:
    """Where the homes are: a new one for each run, removed unless it is to be kept."""
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
    """A log in the times of its chat."""
    from msgspec.structs import replace

    from linnet.sim.chats import Scale, rescaling, schedule
    from linnet.sim.traffic import duration

    if not chat:
        raise Failure("--scale is for chats: nothing else has times of its own", ExitCode.USAGE)
    times = [outcome.at for outcome in run.outcomes]
    mapping: Rescaling = rescaling(schedule(chat, duration(margin)), times)
    entries = (replace(e, time=mapping.map(e.time, Scale(scale.value))) for e in run.log.entries)
    return replace(run.log, entries=tuple(entries))


def _show(
    experiment: Experiment,
    runs: Sequence[Played],
    logs: Sequence[MergedLog],
    expectations: Sequence[Expectation],
    as_csv: bool,
    as_json: bool,
) -> None:
    from linnet.sim.merged_log import COLUMNS

    if as_json:
        say_json(
            {
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
        )
        return
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
