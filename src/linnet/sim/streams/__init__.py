"""The scenarios of streams: dissemination over an overlay that a tracker built."""
