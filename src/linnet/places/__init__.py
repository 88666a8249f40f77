"""Places: stateful multicast channels that a host owns and guests enter."""
