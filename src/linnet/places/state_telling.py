"""Answers to whoever asks for the state: guests alone, and only what they may replay for it."""

from __future__ import annotations

from linnet.core.ids import AuthorId, PeerId
from linnet.core.reasons import Reason
from linnet.places.channel import state_sync
from linnet.places.channel.membership import Verdict
from linnet.places.messages import AskState, StateIs
from linnet.places.parts import Parts


def tell_state(parts: Parts, peer: PeerId, ask: AskState) -> list[StateIs]:
    """The pages of the answer. A keeper has no state to tell, and is told none."""
    nym = parts.tree.downstreams.get(peer)
    if parts.keeps or nym is None or not parts.is_guest(nym):
        reason = Reason.UNSUPPORTED if parts.keeps else Reason.NOT_A_MEMBER
        return [StateIs(parts.id, ask.request, 0, (), 0, b"", True, reason)]
    planned = state_sync.plan(parts.order, ask.state)
    if not _may_replay(parts, nym, planned):
        planned = state_sync.plan_full(parts.order, ask.state) or state_sync.Unknown()
    if not _may_replay(parts, nym, planned):
        planned = state_sync.Unknown()
    return state_sync.pages(parts.id, ask.request, planned)


def _may_replay(parts: Parts, nym: AuthorId, planned: state_sync.Plan) -> bool:
    """Whether somebody may see all messages that it would be told to ask for."""
    if isinstance(planned, state_sync.Unknown):
        return True
    rows = [parts.fragments.get_at(message, 0) for message in planned.replay]
    return all(
        row is not None and parts.membership.test(nym, row.message, row.generation) is Verdict.YES
        for row in rows
    )
