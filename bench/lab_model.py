"""What the closed-form model of relays costs for each message and margin, on chats of three sizes.

``python -m bench.lab_model [--scale SHARE] [--seed N] [--json]``. Everything is in the figure: the index of
the chat, its five margins, presence, deliveries, receptions, histograms and sums. Processor time, of user and
system; the first margin of each chat pays for memory that the others use again.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from typing import NamedTuple

import numpy as np

from linnet.lab.relays.chat_arrays import ChatArrays, index_chat
from linnet.lab.relays.margins import chat_margins, longest_pause
from linnet.lab.relays.outcomes import outcomes
from linnet.lab.relays.presence import periods_around

MILLION = 1_000_000


class Size(NamedTuple):
    """A kind of chat."""

    name: str
    members: int
    messages: int


SIZES = (Size("dyad", 2, MILLION), Size("group", 30, MILLION), Size("crowd", 252, 2 * MILLION))


def made_chat(size: Size, seed: int) -> ChatArrays:
    """Seventy in a hundred pauses below a minute, some of days; few members say most, and often again."""
    luck = np.random.Generator(np.random.Philox(np.random.SeedSequence((seed, size.members))))
    pauses = np.minimum(np.exp(luck.normal(9.6, 2.7, size.messages)), 4 * 86_400_000).astype(np.int64)
    shares = 1 / np.arange(1, size.members + 1)
    user = luck.choice(size.members, size.messages, p=shares / shares.sum()).astype(np.int32)
    chars = luck.integers(1, 100, size.messages, dtype=np.int32)
    return ChatArrays(np.cumsum(pauses) - pauses[0], user, chars, size.members)


def measure(size: Size, seed: int) -> dict[str, object]:
    """Run the model once over one chat and all its margins."""
    chat = made_chat(size, seed)
    began = time.process_time()
    index = index_chat(chat)
    indexed = time.process_time() - began
    margins = chat_margins(longest_pause(chat))
    seconds, periods = [], []
    for margin in margins:
        started = time.process_time()
        outcome = outcomes(index, periods_around(index, margin), margin)
        seconds.append(time.process_time() - started)
        periods.append(outcome.totals["all", "periods"])
    per_message = 1e9 / len(chat.ts)
    return {
        "chat": size.name,
        "members": size.members,
        "messages": len(chat.ts),
        "index_ns": round(indexed * per_message, 1),
        "margin_s": [margin / 1000 for margin in margins],
        "periods": periods,
        "ns": [round(one * per_message) for one in seconds],
        "mean_ns": round((time.process_time() - began) * per_message / len(margins), 1),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of messages")
    asked = parser.parse_args()
    rows = [
        measure(size._replace(messages=max(int(size.messages * asked.scale), 100)), asked.seed)
        for size in SIZES
    ]
    if asked.json:
        print(json.dumps(rows))
        return 0
    print(f"{'chat':>6} {'members':>8} {'messages':>10} {'ns by margin':>36} {'mean ns':>8} {'peak MiB':>9}")
    for row in rows:
        steps = " ".join(f"{one:>6}" for one in row["ns"])  # type: ignore[attr-defined]
        print(
            f"{row['chat']:>6} {row['members']:>8} {row['messages']:>10,} {steps:>36}"
            f" {row['mean_ns']:>8} {row['peak_mib']:>9}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
