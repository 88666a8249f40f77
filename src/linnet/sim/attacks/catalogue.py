"""All simulated attacks by name, with the shares of attackers for which the study of attacks runs them.

Each is a function of the share and the seed, and its outcome has the same figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from linnet.sim.attacks.conduct import Conduct
from linnet.sim.attacks.crowded_tracker import TableAttack, run_table_attack
from linnet.sim.attacks.false_chains import ChainAttack, Falsehood, run_chain_attack
from linnet.sim.attacks.figures import AttackFigures
from linnet.sim.attacks.hostile_keepers import KeeperAttack, run_keeper_attack
from linnet.sim.attacks.hostile_rendezvous import ContentAttack, run_content_attack
from linnet.sim.attacks.hostile_storage import StorageAttack, run_storage_attack
from linnet.sim.attacks.hostile_tracker import BESIDE_STORAGE, Favour, TrackerAttack, run_tracker_attack
from linnet.sim.attacks.lying_relays import RelayAttackPlan, RelayLie, run_relay_attack
from linnet.sim.attacks.silent_streams import Order, StreamAttack, run_stream_attack

Run = Callable[[float, int], AttackFigures]
"""Runs an attack with a share of attackers and a seed."""


class NamedAttack(Struct, frozen=True):
    """An attack that can be run by its name."""

    name: str
    """What is typed after ``--attack``."""
    way: str
    """The command that it belongs to: ``linnet sim WAY``."""
    says: str
    """What the attackers do, and what the share is a share of, for people."""
    shares: tuple[float, ...]
    """The shares for which the study runs it; the first is the default."""
    run: Run
    order: str = ""
    """When attackers join, if that matters."""
    holds_to: float = 0.0
    """Up to this share of attackers every due delivery comes; 0: nothing is promised."""


_HONEST = 12
"""The honest nodes of the smaller streams."""

_LARGE = 0.8
"""Above this share of attackers streams are the smaller ones, since attackers make the run long."""


def _beside(share: float) -> int:
    """Return how many attackers are this share of all nodes, beside the honest ones."""
    return max(1, round(_HONEST * share / (1.0 - share)))


def _silent(conduct: Conduct, order: Order) -> Run:
    def run(share: float, seed: int) -> AttackFigures:
        honest = _HONEST if share > _LARGE else 2 * _HONEST
        return run_stream_attack(StreamAttack(conduct, share, order, honest, seed=seed)).figures

    return run


def _crowding(share: float, seed: int) -> AttackFigures:
    scenario = StreamAttack(Conduct.MUTE, share, Order.BEFORE, _HONEST, crowding=True, seed=seed)
    return run_stream_attack(scenario).figures


def _tracker(favour: Favour, storage: bool) -> Run:
    return lambda share, seed: run_tracker_attack(TrackerAttack(favour, storage=storage, seed=seed))


def _storage(named: bool) -> Run:
    return lambda share, seed: run_storage_attack(StorageAttack(share, named=named, seed=seed))


def _chains(falsehood: Falsehood) -> Run:
    def run(share: float, seed: int) -> AttackFigures:
        scenario = ChainAttack(falsehood, _HONEST, _beside(share), claims=32, seed=seed)
        return run_chain_attack(scenario).figures

    return run


def _table(networks: int) -> Run:
    def run(share: float, seed: int) -> AttackFigures:
        return run_table_attack(TableAttack(_HONEST, _beside(share), networks=networks, seed=seed))

    return run


def _relays(lie: RelayLie) -> Run:
    def run(share: float, seed: int) -> AttackFigures:
        relays = 1 if share == 1.0 else 2
        return run_relay_attack(RelayAttackPlan(lie, relays=relays, seed=seed)).figures

    return run


_NEIGHBOURS = (1 / 2, 2 / 3, 9 / 10)
_SAYS = {
    Conduct.SILENT: "neighbours forward nothing",
    Conduct.MUTE: "neighbours forward nothing and announce nothing",
    Conduct.SLEEPER: "neighbours forward nothing after a while",
    Conduct.SELECTIVE: "neighbours forward to half of the readers",
    Conduct.PARTIAL: "neighbours forward every third event",
    Conduct.LATE: "neighbours forward every event 40 s late",
}
_TRACKERS = {
    Favour.ISOLATE: "a tracker gives a quarter of the readers false neighbours",
    Favour.PARTITION: "a tracker parts a stream in two",
    Favour.FAVOUR: "a tracker keeps most nodes far from the publisher",
}

_RELAYS = {
    RelayLie.WITHHOLD: "one relay withholds what some members say",
    RelayLie.REORDER: "one relay hands events over in another order",
    RelayLie.REPLAY: "one relay shows an old state",
    RelayLie.SPLIT: "one relay shows members different events",
}

ATTACKS: tuple[NamedAttack, ...] = (
    *(
        NamedAttack(conduct.value, "streams", says, _NEIGHBOURS, _silent(conduct, order), order.value, 1 / 2)
        for conduct, says in _SAYS.items()
        for order in (Order.AFTER, Order.BEFORE)
    ),
    NamedAttack(
        "crowding",
        "streams",
        "neighbours forward nothing, and report links among themselves as failed",
        (1 / 2, 2 / 3),
        _crowding,
        Order.BEFORE.value,
        holds_to=1 / 2,
    ),
    *(
        NamedAttack(
            favour.value,
            "streams",
            says,
            (1.0,),
            _tracker(favour, storage=False),
            holds_to=1.0 if favour is Favour.FAVOUR else 0.0,
        )
        for favour, says in _TRACKERS.items()
    ),
    *(
        NamedAttack(
            favour.value + BESIDE_STORAGE,
            "streams",
            f"{_TRACKERS[favour]}, and there is an honest storage node",
            (1.0,),
            _tracker(favour, storage=True),
            holds_to=1.0,
        )
        for favour in (Favour.ISOLATE, Favour.PARTITION)
    ),
    NamedAttack(
        "empty-volunteers",
        "streams",
        "storage nodes that nobody named show no history",
        (1 / 2, 3 / 4, 9 / 10),
        _storage(named=False),
        holds_to=3 / 4,
    ),
    NamedAttack(
        "empty-storage",
        "streams",
        "storage nodes beside named ones show no history",
        (1 / 2, 3 / 4, 9 / 10),
        _storage(named=True),
        holds_to=9 / 10,
    ),
    NamedAttack(
        "fork",
        "streams",
        "a publisher signs two events under each number; due is the proof",
        (1 / 13,),
        _chains(Falsehood.FORK),
        holds_to=1 / 13,
    ),
    NamedAttack(
        "claim",
        "streams",
        "neighbours claim chains that do not exist",
        (1 / 13, 1 / 5),
        _chains(Falsehood.CLAIM),
        holds_to=1 / 5,
    ),
    NamedAttack(
        "fill-table",
        "streams",
        "keys of one network fill a tracker's table",
        (25 / 37,),
        _table(networks=1),
        holds_to=25 / 37,
    ),
    NamedAttack(
        "fill-table-widely",
        "streams",
        "keys of a network each fill a tracker's table",
        (25 / 37,),
        _table(networks=0),
        holds_to=25 / 37,
    ),
    *(
        NamedAttack(lie.value, "rooms", says, (1 / 2, 1.0), _relays(lie), holds_to=1 / 2)
        for lie, says in _RELAYS.items()
    ),
    NamedAttack(
        "rendezvous",
        "content",
        "the nodes nearest to the attributes hand nothing on",
        (0.05, 0.1),
        lambda share, seed: run_content_attack(ContentAttack(True, share, seed=seed)),
    ),
    NamedAttack(
        "nodes",
        "content",
        "nodes that the seed draws hand nothing on",
        (0.1, 0.3),
        lambda share, seed: run_content_attack(ContentAttack(False, share, seed=seed)),
    ),
    NamedAttack(
        "keepers",
        "places",
        "keepers give nothing back",
        (1 / 4, 1 / 2, 3 / 4),
        lambda share, seed: run_keeper_attack(KeeperAttack(share, seed=seed)),
        holds_to=1 / 2,
    ),
)
"""Every attack. The same name may be here twice, with attackers that join before the others and after."""


def attacks_of(way: str) -> Iterator[NamedAttack]:
    """Yield the attacks of one command, each name once."""
    told: dict[str, None] = {}
    for attack in ATTACKS:
        if attack.way == way and attack.name not in told:
            told[attack.name] = None
            yield attack
