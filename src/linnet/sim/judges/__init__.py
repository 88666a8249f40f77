"""Judges of the four ways to subscribe. They know ids and what was seen from outside, and no machine."""
