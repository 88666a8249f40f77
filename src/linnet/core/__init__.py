"""The vocabulary of the machines: inputs, effects, limits, reasons, errors and the store interface.

A machine is sans-IO: it opens no socket, reads no clock, draws no random numbers of its own and starts no
task. It has one entry, ``handle(input, now) -> list[Effect]``; drivers perform the effects that it returns.
"""
