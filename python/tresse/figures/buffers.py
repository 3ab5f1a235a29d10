"""Buffers as the papers of 2010 size them, in bytes of the stack.

Their texts count payload, and so does their model: a message of 1,452 bytes takes 1,452 bytes of a buffer. The stack
counts the DATA chunk that carries it, with its header of 16 bytes, as RFC 9260 counts outstanding data.
"""

MESSAGE_BYTES = 1452
"""User data of a full packet of 1,500 bytes."""
CHUNK_BYTES = MESSAGE_BYTES + 16
"""The DATA chunk that carries it (RFC 9260, section 3.3.1)."""


def holding(user_data_bytes: int) -> str:
    """Return the size, as scenarios write it, of a buffer for this much user data in full messages."""
    return f"{user_data_bytes * CHUNK_BYTES // MESSAGE_BYTES}B"
