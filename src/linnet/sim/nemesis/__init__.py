"""The open world: nodes restart, move, vanish and have wrong clocks; judges check the promises."""
