"""The input: messages with text."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def texts(messages: DataFrame) -> DataFrame:
    """Select chat and length of each message with text. Grain: that of `messages`; rows may repeat."""
    return messages.where(F.col("kind") == "text").select("chat", "chars")
