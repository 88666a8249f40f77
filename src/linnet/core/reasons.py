"""Why something was rejected, dropped or hung up: one closed list for code, wire, trace and people."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """All named reasons. A new limit adds its own; nothing ends without a reason."""

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

    # The rules of a room, or its members, forbid it.
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
    WITHHELD = "withheld"
    UNPAID = "unpaid"
    TOO_EXPENSIVE = "too_expensive"

    # A peer of an overlay without trackers is not believed.
    IMPLAUSIBLE_FILTER = "implausible_filter"
    PROBING = "probing"
    NOT_IN_TOPIC = "not_in_topic"

    # The keys of a group do not allow it, or the message does not fit them.
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

    # The state of a place differs from the signed hash.
    STATE_MISMATCH = "state_mismatch"

    # A message was redacted.
    REDACTED = "redacted"

    # Something was given up after it had been accepted.
    GAP_UNFILLED = "gap_unfilled"
    QUEUE_FULL = "queue_full"
    SUBSCRIBER_SLOW = "subscriber_slow"
    RETENTION = "retention"
    QUOTA = "quota"
    DISK_FULL = "disk_full"
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
    SILENT = "silent"
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

    # The node itself is the reason.
    CLOCK_STEP = "clock_step"
    BUG = "bug"

    @classmethod
    def _missing_(cls, value: object) -> Reason | None:
        """Read an unknown reason, which a newer node may send, as `UNKNOWN`: it is no cause to hang up on
        it."""
        return cls.UNKNOWN if isinstance(value, str) and 0 < len(value) <= 64 else None
