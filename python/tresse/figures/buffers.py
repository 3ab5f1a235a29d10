"""Buffer sizes of the papers of 2010, converted to bytes of the stack.

The papers and their model count user data: a message of 1,452 bytes takes 1,452 bytes of a buffer. The stack counts the
DATA chunk of the message, with its header of 16 bytes, as RFC 9260 counts outstanding data.
"""

MESSAGE_BYTES = 1452
"""User data of a full packet of 1,500 bytes."""
CHUNK_BYTES = MESSAGE_BYTES + 16
"""The DATA chunk that carries it (RFC 9260, section 3.3.1)."""


def holding(user_data_bytes: int) -> str:
    """Return the size of a buffer for this much user data in full messages, as scenarios write it."""
    return f"{user_data_bytes * CHUNK_BYTES // MESSAGE_BYTES}B"
