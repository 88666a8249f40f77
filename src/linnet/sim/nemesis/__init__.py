"""The open world: what restarts, moves, vanishes and lies about time, and judges of what came of it."""
