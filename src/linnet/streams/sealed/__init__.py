"""Sealed streams: carried by anyone, read by the devices that the owner has let in."""
