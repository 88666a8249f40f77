"""Why something was rejected, dropped or hung up: one closed list for code, wire, trace and people."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Every named reason. A new limit brings its own; nothing ends without one."""

    # An event or message was rejected.
    MALFORMED = "malformed"
    UNSUPPORTED = "unsupported"
    TOO_LARGE = "too_large"
    BAD_SIGNATURE = "bad_signature"
    UNKNOWN_DEVICE = "unknown_device"
    CARD_EXPIRED = "card_expired"
    CARD_NOT_YET_VALID = "card_not_yet_valid"
    CARD_REVOKED = "card_revoked"
    NOT_A_PUBLISHER = "not_a_publisher"
    FORKED_CHAIN = "forked_chain"
    NOT_JOINED = "not_joined"
    NOT_RESPONSIBLE = "not_responsible"
    STALE = "stale"
    TOO_MANY = "too_many"
    IN_USE = "in_use"
    UNKNOWN = "unknown"

    # A room's rules, or its members, say no.
    NOT_ALLOWED = "not_allowed"
    NOT_A_MEMBER = "not_a_member"
    BANNED = "banned"
    NO_POWER = "no_power"
    NOT_INVITED = "not_invited"
    WAITING = "waiting"
    INVITATION_EXPIRED = "invitation_expired"
    RELAY_ONLY = "relay_only"
    UNKNOWN_ROOM = "unknown_room"
    MISSING_DEPENDENCY = "missing_dependency"
    SOFT_FAILED = "soft_failed"
    FUTURE_TIME = "future_time"
    CURSOR_EXPIRED = "cursor_expired"
    NOT_A_RELAY = "not_a_relay"
    REPEATED_NONCE = "repeated_nonce"
    DUPLICATE = "duplicate"

    # Someone without a tracker is not believed.
    IMPLAUSIBLE_FILTER = "implausible_filter"
    PROBING = "probing"
    NOT_IN_TOPIC = "not_in_topic"

    # A group's keys do not allow it, or what came does not fit them.
    DESYNCED = "desynced"
    EQUIVOCATION = "equivocation"
    UNKNOWN_MEMBER = "unknown_member"
    WRONG_EPOCH = "wrong_epoch"
    KEY_MISSING = "key_missing"
    KEY_SPENT = "key_spent"
    UNDECRYPTABLE = "undecryptable"
    MISSING_PREKEYS = "missing_prekeys"
    PREKEY_EXPIRED = "prekey_expired"
    NEEDS_HEAL = "needs_heal"
    SURPLUS = "surplus"
    ACKS_OWED = "acks_owed"
    GROUP_FULL = "group_full"
    BEFORE_JOINING = "before_joining"

    # A place's state is not the one whose hash its voice signed.
    STATE_MISMATCH = "state_mismatch"

    # What was said was taken back.
    REDACTED = "redacted"

    # Something accepted was given up.
    GAP_UNFILLED = "gap_unfilled"
    QUEUE_FULL = "queue_full"
    SUBSCRIBER_SLOW = "subscriber_slow"
    RETENTION = "retention"
    QUOTA = "quota"
    NO_STORAGE = "no_storage"
    NOT_HELD = "not_held"
    DAMAGED = "damaged"
    OVERDUE = "overdue"
    TIMEOUT = "timeout"
    CONGESTED = "congested"
    LOST = "lost"
    PARTITIONED = "partitioned"

    # A link was closed or never came up.
    SLOW_PEER = "slow_peer"
    PING_TIMEOUT = "ping_timeout"
    PROTOCOL_ERROR = "protocol_error"
    OVERSIZED_FRAME = "oversized_frame"
    FLOODING = "flooding"
    FORGING = "forging"
    REPLAYING = "replaying"
    DUPLICATE_LINK = "duplicate_link"
    NOT_NEEDED = "not_needed"
    SHUTDOWN = "shutdown"
    BLOCKED = "blocked"
    REMOTE_CLOSED = "remote_closed"
    CRASHED = "crashed"
    WRONG_KEY = "wrong_key"
    AUTH_FAILED = "auth_failed"
    TLS_FAILED = "tls_failed"
    VERSION_MISMATCH = "version_mismatch"
    DIAL_TIMEOUT = "dial_timeout"
    CONNECTION_REFUSED = "connection_refused"
    UNREACHABLE = "unreachable"
    NO_ADDRESS = "no_address"
    UNREACHABLE_INBOUND = "unreachable_inbound"
    TOO_MANY_LINKS = "too_many_links"

    # The node itself.
    CLOCK_STEP = "clock_step"
    BUG = "bug"

    @classmethod
    def _missing_(cls, value: object) -> Reason | None:
        """A newer node may give a reason that we do not know: that is no reason to hang up on it."""
        return cls.UNKNOWN if isinstance(value, str) and 0 < len(value) <= 64 else None
