"""The vocabulary of the machines: inputs, effects, limits, reasons, errors, what a store is.

A machine is sans-IO: it opens no socket, reads no clock, draws no luck of its own and starts no
task. It has one entry, ``handle(input, now) -> list[Effect]``; drivers perform what it returns.
"""
