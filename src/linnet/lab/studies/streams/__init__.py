"""The study of streams: overlays, floods and their delays (Juslenius 2021, chapter 5)."""
