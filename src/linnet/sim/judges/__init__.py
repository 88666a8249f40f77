"""Judges of the four ways to subscribe. They know ids and outside observations, and no machine."""
