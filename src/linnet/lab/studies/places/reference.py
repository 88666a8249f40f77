"""The same answers from the shipped classes, fragment by fragment, as a guest would come to them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator

import msgspec
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame

from linnet.core.errors import RemoteError
from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.event.signing import decode_unit, verify_unit
from linnet.lab.studies.places import answers as jobs
from linnet.lab.studies.places.columns import ANSWERS, arrow_of, batch_of
from linnet.lab.studies.places.line import FALLS, UNEXPLAINED
from linnet.lab.studies.places.voice import card_of, key_of
from linnet.places.channel.fragment_store import Conflict, Fragments, New, Row
from linnet.places.channel.membership import Membership
from linnet.places.channel.packet import Modifier, slices
from linnet.places.channel.reassembly import Began, Broken, Reassembly
from linnet.places.channel.state_order import Applied, Forked, StateOrder
from linnet.places.deed import Policy
from linnet.places.multicast.fragment_repair import Gaps
from linnet.places.multicast.fragmentation import Head, head_of
from linnet.store.memory import MemoryStore

Answer = tuple[str, str, str]
"""Job, key and answer."""
_MOST = 1 << 30


def reference_of(units: DataFrame, seed: int) -> DataFrame:
    """Every place as a guest has it who took in what came. Grain: that of `ANSWERS`."""

    def work(key: tuple[pa.Scalar, ...], table: pa.Table) -> pa.Table:
        place = key[0].as_py()
        pairs = sorted(zip(table["arrival"].to_pylist(), table["unit"].to_pylist(), strict=True))
        told = list(Guest(seed, place).answers([raw for _, raw in pairs]))
        batch = batch_of([(place, *each) for each in told], arrow_of(ANSWERS))
        return pa.Table.from_batches([batch])

    return units.groupBy("place").applyInArrow(work, ANSWERS.columns)


class Guest:
    """What somebody keeps of one place."""

    def __init__(self, seed: int, place: int) -> None:
        self._topic = TopicId(key_of(seed, place).public)
        self._card = card_of(seed)
        store = MemoryStore()
        self.fragments = Fragments(self._topic, store.log, store.cells)
        self.membership = Membership(self._topic, store.cells, Policy.PUBLIC)
        self.assembly = Reassembly(self.fragments)
        self._heads: dict[int, Head] = {}
        self._conflicts: dict[int, str] = {}

    def answers(self, units: list[bytes]) -> Iterator[Answer]:
        """All that can be told when these have come, in this order."""
        for arrival, raw in enumerate(units):
            fault = self._take(raw)
            if fault is not None:
                yield jobs.REFUSED, str(arrival), fault.value
        for fragment, reason in self._conflicts.items():
            yield jobs.CONFLICT, str(fragment), reason
        messages = sorted({head.message for head in self._heads.values()})
        yield from self._gaps(messages)
        yield from self._generations()
        begun: list[Began] = []
        for message in messages:
            yield self._message(message)
            for step in self.assembly.historic(message):
                if isinstance(step, Began):
                    begun.append(step)
                    yield jobs.PARSED, str(message), _told(step)
                elif isinstance(step, Broken):
                    yield jobs.PARSED, str(message), step.reason.value
        yield from self._states(messages, begun)
        yield from self._members(messages)
        called = Counter(name for step in begun for name in slices(step.method))
        for name, count in called.items():
            yield jobs.METHODS, name, str(count)

    def _take(self, raw: bytes) -> Reason | None:
        try:
            verified = verify_unit(decode_unit(raw), self._card)
            head = head_of(verified.events[0])
        except RemoteError as error:
            return error.reason
        except msgspec.DecodeError:
            return Reason.MALFORMED
        stored = self.fragments.store(verified, head, 0.0)
        if isinstance(stored, Conflict):
            self._conflicts[head.fragment] = stored.reason.value
        elif isinstance(stored, New):
            self._heads[head.fragment] = head
            if head.change is not None:
                self.membership.store(head.change, head.message, head.generation)
        return None

    def _gaps(self, messages: list[int]) -> Iterator[Answer]:
        for first, last in self.fragments.missing(_MOST):
            yield jobs.GAPS, f"fragment {first}", str(last)
        gaps = Gaps()
        gaps.open(1, max(messages, default=0), 0.0)
        for message in messages:
            gaps.fill(message)
        for gap in gaps:
            yield jobs.GAPS, f"message {gap.first}", str(gap.last)

    def _generations(self) -> Iterator[Answer]:
        before: Row | None = None
        for fragment in sorted(self._heads):
            row = self.fragments.get(fragment)
            if row is None:
                continue
            least = 0 if before is None else before.next_generation
            missing = fragment - 1 - (-1 if before is None else before.fragment)
            if row.generation < least:
                yield jobs.GENERATIONS, str(fragment), FALLS
            elif row.generation > least + missing:
                yield jobs.GENERATIONS, str(fragment), UNEXPLAINED
            before = row

    def _message(self, message: int) -> Answer:
        rows = list(self.fragments.message(message))
        verified = [self.fragments.verified(row) for row in rows]
        text = b"".join(each.events[0].body for each in verified if each is not None)
        upto = rows[-1].end if rows else 0
        whole = str(self.fragments.is_whole(message)).lower()
        return jobs.MESSAGES, str(message), f"{whole} {upto} {hashlib.sha256(text).hexdigest()}"

    def _states(self, messages: list[int], begun: list[Began]) -> Iterator[Answer]:
        order = StateOrder(self._topic, MemoryStore().cells)
        changing = {step.message: step for step in begun if step.header.delta is not None}
        for message in messages:
            step = changing.get(message)
            if step is not None and step.header.delta is not None:
                header = step.header
                outcomes = order.offered(message, step.header.delta, step.modifiers, header.hash)
                forked = {each.message for each in outcomes if isinstance(each, Forked)}
                for each in outcomes:
                    if isinstance(each, Applied) and changing[each.message].header.hash is not None:
                        yield jobs.HASHES, str(each.message), str(each.message not in forked).lower()
            yield jobs.STATE, str(message), order.state.digest().hex()

    def _members(self, messages: list[int]) -> Iterator[Answer]:
        nyms = {head.change.nym: None for head in self._heads.values() if head.change is not None}
        for message in messages:
            row = self.fragments.get_at(message, 0)
            if row is None:
                continue
            for nym in nyms:
                for later, replay in ((0, False), (0, True), (1, False)):
                    generation = row.generation + later
                    verdict = self.membership.test(nym, message, generation, replay)
                    key = f"{nym.hex()} {message} {generation} {str(replay).lower()}"
                    yield jobs.MEMBERS, key, verdict.value


def _told(step: Began) -> str:
    header = step.header
    delta = "-" if header.delta is None else str(header.delta)
    return f"{step.method} {delta} {(header.hash or b'').hex()} {';'.join(map(_modifier, step.modifiers))}"


def _modifier(modifier: Modifier) -> str:
    return f"{modifier.operator}{modifier.name}={modifier.value.hex()}"
