"""The tables of the study of retention that people read."""

from __future__ import annotations

from collections.abc import Sequence

from linnet.lab.report.parts import Cell, Grid
from linnet.lab.studies.relays.drawings import margin_name
from linnet.lab.studies.retention.metrics import CLASSES, Trade, ratio
from linnet.lab.studies.retention.parameters import RetentionParameters
from linnet.lab.studies.retention.recommending import Advised, Recommendation
from linnet.lab.studies.retention.sweep import MINUTE, OUR_DEFAULT, name_of

OURS = name_of(OUR_DEFAULT)


def recommended_grid(decided: Sequence[Recommendation]) -> Grid:
    """What is recommended to each class, beside our default."""
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            CLASSES[each.trade.population],
            each.kept.rooms.chats,
            each.name,
            each.trade.of_unlimited(each.kept),
            each.trade.held(each.kept),
            each.trade.of_unlimited(each.trade.ours),
            each.trade.held(each.trade.ours),
            each.reason,
        )
        for each in decided
    )
    return Grid(
        title="By class of room",
        columns=(
            "class",
            "chats",
            "retention",
            "serves of unlimited",
            "holds of unlimited",
            f"{OURS} serves",
            f"{OURS} holds",
            "reason",
        ),
        rows=rows,
    )


def presences_grid(advised: Advised, margins: Sequence[int]) -> Grid:
    """What the rule gives at every presence."""
    classes = dict.fromkeys(population for population, _ in advised)
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (CLASSES[population], *(advised[population, margin].name for margin in margins))
        for population in classes
    )
    return Grid(
        title="By the same rule at every presence",
        columns=("class", *map(margin_name, margins)),
        rows=rows,
        note="How much the answer depends on when people are online. Margins are those of each chat, from "
        "one second to its longest silence.",
    )


def rooms_grid(decided: Sequence[Recommendation], parameters: RetentionParameters, left_out: int) -> Grid:
    """Of what rooms the classes are."""
    rows: list[tuple[Cell, ...]] = []
    for each in decided:
        rooms = each.kept.rooms
        mean = ratio(rooms.members, rooms.chats)
        owed, back = ratio(rooms.owed, rooms.pairs), ratio(rooms.owed_ever, rooms.owed)
        rows.append(
            (
                CLASSES[each.trade.population],
                rooms.chats,
                rooms.members,
                mean,
                rooms.events,
                rooms.pairs,
                owed,
                back,
            )
        )
    border = f"{parameters.lively / 1000:g} s"
    return Grid(
        title="Classes",
        columns=(
            "class",
            "chats",
            "members",
            "members of a chat",
            "events",
            "pairs of event and other member",
            "of them owed",
            "of those ever online after it",
        ),
        rows=tuple(rows),
        note=f"Lively: the median pause between messages is at most {border}; slow: longer. Members are "
        "those who speak. A pair is owed if its member was online before the event was sent or when it "
        f"was. {left_out:,} chats are in no class: one member, or no pause above a second."
        + (
            " About 69 % of WhatsApp's messages follow within a minute."
            if parameters.lively == MINUTE
            else ""
        ),
    )


def relays_grid(decided: Sequence[Recommendation], relays: Sequence[int]) -> Grid:
    """What several relays hold, and with how many people each has to do."""
    rows: list[tuple[Cell, ...]] = []
    for each in decided:
        trade = each.trade
        for number in sorted(set(relays)):
            kept = each.kept if number else trade.nothing
            rooms = kept.rooms
            rows.append(
                (
                    CLASSES[trade.population],
                    number,
                    each.name if number else None,
                    kept.served,
                    kept.served_of_all,
                    kept.undelivered_share,
                    number * kept.hours_per_event,
                    number * trade.ours.hours_per_event,
                    ratio(rooms.members, rooms.chats * number) if number else None,
                )
            )
    return Grid(
        title="Held in sum, and people per relay",
        columns=(
            "class",
            "relays",
            "retention",
            "owed pairs served",
            "all pairs served",
            "events undelivered",
            "event-hours per event, in sum",
            f"with {OURS}",
            "people per relay",
        ),
        rows=tuple(rows),
        note="People are spread evenly over the relays of a room. The thesis has one relay below ten "
        "members, else two.",
    )


def sweep_grid(trades: Sequence[Trade]) -> Grid:
    """Every retention in every class, at one presence."""
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            CLASSES[trade.population],
            name_of(kept.retention),
            kept.served,
            trade.of_unlimited(kept),
            kept.served_of_all,
            kept.undelivered_share,
            kept.hours_per_event,
            kept.hours_per_member_day,
            kept.megabyte_hours,
            trade.held(kept),
        )
        for trade in trades
        for kept in trade.kept
    )
    return Grid(
        title="The sweep",
        columns=(
            "class",
            "retention",
            "owed pairs served",
            "of unlimited",
            "all pairs served",
            "events undelivered",
            "event-hours per event",
            "event-hours per member and day",
            "megabyte-hours",
            "held of unlimited",
        ),
        rows=rows,
        note="Held by one relay of each room, from the sending to the retention's or the chat's end.",
    )
