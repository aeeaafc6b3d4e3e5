"""The proportions of logos, from the headers of PNG, JPEG and WebP files."""

import struct
from pathlib import Path

# Start-of-frame markers of JPEG. The missing ones in this range define tables (ITU T.81, table B.1).
_JPEG_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}


def is_wide(logo: str) -> bool:
    """Whether a logo is over twice as wide as high, and so contains the name; True if its size is unknown."""
    try:
        width, height = _size(Path(logo).read_bytes())
    except (OSError, struct.error, ValueError, IndexError):
        return True
    return width > 2 * height


def _size(content: bytes) -> tuple[int, int]:
    """Return width and height. Raises `struct.error`, `ValueError` or `IndexError`."""
    if content.startswith(b"\x89PNG"):
        width, height = struct.unpack_from(">16xII", content)
    elif content.startswith(b"\xff\xd8"):
        frame = 2
        while content[frame + 1] not in _JPEG_FRAMES:
            frame += 2 + struct.unpack_from(">2xH", content, frame)[0]
        height, width = struct.unpack_from(">5xHH", content, frame)
    elif content[12:16] == b"VP8 ":
        width, height = (side & 0x3FFF for side in struct.unpack_from("<26xHH", content))
    elif content[12:16] == b"VP8L":
        (sides,) = struct.unpack_from("<21xI", content)
        width, height = 1 + (sides & 0x3FFF), 1 + (sides >> 14 & 0x3FFF)
    elif content[12:16] == b"VP8X":
        width, height = (1 + int.from_bytes(content[at : at + 3], "little") for at in (24, 27))
    else:
        raise ValueError("not a PNG, JPEG or WebP")
    return width, height
