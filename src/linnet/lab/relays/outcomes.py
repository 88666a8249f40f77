"""What comes of a chat and a presence, as integer histograms and sums for each mode.

Modes are ``p2p`` (senders deliver by themselves; only direct pushes are counted, not what members
tell each other), ``p2p-thesis`` (the baseline of Schichtholz 2024; its first deliveries and the first
reception of each period are the same, see `linnet.lab.relays.thesis`) and ``relays``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from linnet.lab.relays.around_sends import attend_around
from linnet.lab.relays.attendance import Attendance, attend
from linnet.lab.relays.chat_arrays import I64, ChatIndex
from linnet.lab.relays.deliveries import Deliveries, first_deliveries
from linnet.lab.relays.durations import Counts, histogram
from linnet.lab.relays.held import event_bytes, exact_sum, held
from linnet.lab.relays.meetings import first_pushes_of_any
from linnet.lab.relays.presence import Presence
from linnet.lab.relays.pushes import first_pushes
from linnet.lab.relays.returns import first_relayed

P2P, P2P_THESIS, RELAYS = "p2p", "p2p-thesis", "relays"
MODES = (P2P, P2P_THESIS, RELAYS)
EVERY_MODE = "all"
"""Sums that are the same in every mode."""
FIRST_DELIVERY = "first_delivery"
"""From the sending to the first delivery to anybody else; never included."""
RETURN_RECEPTION = "return_reception"
"""From the start of an online period to the first reception in it; an empty period counts as never."""


class ChatOutcome(NamedTuple):
    """Histograms by mode and measure, with bins of `linnet.lab.bins`; sums by mode and measure."""

    histograms: dict[tuple[str, str], Counts]
    totals: dict[tuple[str, str], int]


def outcomes(index: ChatIndex, presence: Presence, margin: int | None = None) -> ChatOutcome:
    """All measures of a chat.

    Name the margin if the presence is that of `periods_around`: the result is the same, without the
    members times periods steps that any other presence takes.
    """
    if margin is None:
        attendance = attend(index, presence)
        return _outcome(attendance, first_pushes_of_any(attendance))
    attendance = attend_around(index, presence, margin)
    return _outcome(attendance, first_pushes(attendance, margin))


def _outcome(attendance: Attendance, pushed: I64) -> ChatOutcome:
    deliveries, relayed = first_deliveries(attendance), first_relayed(attendance)
    ts, start = attendance.ordered.chat.ts, attendance.periods.start
    p2p_delivery, p2p_return = histogram(ts, deliveries.p2p), histogram(start, pushed)
    histograms = {
        (P2P, FIRST_DELIVERY): p2p_delivery,
        (P2P_THESIS, FIRST_DELIVERY): dict(p2p_delivery),
        (RELAYS, FIRST_DELIVERY): histogram(ts, deliveries.relays),
        (P2P, RETURN_RECEPTION): p2p_return,
        (P2P_THESIS, RETURN_RECEPTION): dict(p2p_return),
        (RELAYS, RETURN_RECEPTION): histogram(start, relayed),
    }
    return ChatOutcome(histograms, _totals(attendance, deliveries))


def _totals(attendance: Attendance, deliveries: Deliveries) -> dict[tuple[str, str], int]:
    chat, periods = attendance.ordered.chat, attendance.periods
    kept = held(chat)
    at_once = int(attendance.at_ends.sum()) - int(periods.at_start.sum()) - len(chat.ts)
    waited = periods.at_start - periods.at_prior_end
    sent = np.concatenate(([0], np.cumsum(chat.ts)))
    waits = waited * periods.start - (sent[periods.at_start] - sent[periods.at_prior_end])
    return {
        (EVERY_MODE, "events"): len(chat.ts),
        (EVERY_MODE, "periods"): len(periods.start),
        (EVERY_MODE, "bytes"): int(event_bytes(chat).sum()),
        (EVERY_MODE, "pairs"): len(chat.ts) * (chat.members - 1),
        (RELAYS, "pairs_at_once"): at_once,
        (RELAYS, "pairs_after_waiting"): int(waited.sum()),
        (RELAYS, "pairs_waited_s"): exact_sum(waits) // 1000,
        (RELAYS, "held_event_s"): kept.event_ms // 1000,
        (RELAYS, "held_byte_s"): kept.byte_ms // 1000,
        (RELAYS, "later_than_p2p"): _later(deliveries),
        (RELAYS, "undelivered_though_online"): _undelivered_though_online(attendance, deliveries.relays),
    }


def _later(deliveries: Deliveries) -> int:
    """Events that relays deliver later than senders would have; there must be none."""
    p2p, relays = deliveries
    return int(((p2p >= 0) & ((relays < 0) | (relays > p2p))).sum())


def _undelivered_though_online(attendance: Attendance, relays: I64) -> int:
    """Events that relays do not deliver though another is online at the sending or after it; none must be.

    Found by when each member is last online, and so without what the deliveries were found by.
    """
    chat, presence = attendance.ordered.chat, attendance.presence
    until = np.zeros(max(chat.members, 2), dtype=np.int64)
    np.maximum.at(until, presence.member, presence.end)
    last, second = np.argsort(until)[::-1][:2].tolist()
    lost = np.flatnonzero(relays < 0)
    others = np.where(chat.user[lost] == last, until[second], until[last])
    return int((others > chat.ts[lost]).sum())
