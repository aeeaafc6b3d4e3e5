"""UUIDs as text (RFC 9562), for what each request makes: `uuid.UUID` would take several times as long."""

import random


def new() -> str:
    """Return a UUID of version 4, for what must be unique and need not be hard to guess: the system's random numbers would be a system call."""
    digits = f"{random.getrandbits(128):032x}"
    return spelled(f"{digits[:12]}4{digits[13:16]}a{digits[17:]}")


def spelled(digits: str) -> str:
    """Return the UUID of 32 hexadecimal digits."""
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def as_bytes(text: str) -> bytes:
    """Return the 16 bytes of a UUID."""
    return bytes.fromhex(text.replace("-", ""))
