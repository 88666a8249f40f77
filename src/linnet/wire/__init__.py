"""Bytes and messages: frames with a limit, and the one codec that reads foreign bytes."""
