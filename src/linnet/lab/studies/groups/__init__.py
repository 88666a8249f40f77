"""The study of encrypted groups: bytes, processor time and keys, as groups grow."""
