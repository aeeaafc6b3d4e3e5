"""bcrypt of the system's libxcrypt, which takes 15 % less time than the package, or else of the package.

The only module that imports bcrypt.
"""

import ctypes
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from itertools import cycle

import bcrypt
import structlog

Hash = Callable[[bytes, bytes], bytes]
CryptRn = Callable[[bytes, bytes, ctypes.Array[ctypes.c_char], int], bytes | None]

MOST_BYTES = 72  # bcrypt reads no more of its input
# The same library: .1 of Debian and Ubuntu; .2 of Fedora, Arch Linux and, from 9 on, Enterprise Linux.
_LIBRARIES = ("libcrypt.so.1", "libcrypt.so.2")
_DATA_BYTES = 32768  # of `struct crypt_data`
_VERSIONS = (b"$2a$", b"$2b$", b"$2y$")  # three names of one function
_SETTING_BYTES = len("$2b$10$") + 22
# A password that libxcrypt hashes differently under `$2a$`, and bytes around 0x80.
_SAMPLES = [
    b"\xff\xff\xa3",
    *(bytes(range(0x80 - length // 2, 0x80 + -(-length // 2))) for length in (0, 1, 3, 18, 36, 55, 71, 72)),
]
_SAMPLE_SETTING = b"04$abcdefghijklmnopqrstuu"


def hashpw(password: bytes, setting: bytes) -> bytes:
    """Hash at most 72 bytes without NUL. `setting` ends with the salt, or is a hash. Raises `ValueError`."""
    if b"\0" in password or len(password) > MOST_BYTES or not setting.startswith(_VERSIONS):
        raise ValueError("bcrypt takes at most 72 bytes without NUL, and $2a$, $2b$ or $2y$")
    return chosen()(password, setting)


@cache
def chosen() -> Hash:
    """Choose for the first hash, of the application that the master makes: the workers inherit it."""
    return choose(crypt_rn())


def crypt_rn() -> CryptRn | None:
    """Return the function of libxcrypt. The libcrypt of old versions of glibc does not have it."""
    for name in _LIBRARIES:
        with suppress(OSError, AttributeError):
            # `CDLL` releases the GIL during a call.
            function = ctypes.CDLL(name).crypt_rn
            function.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int)
            function.restype = ctypes.c_char_p
            return function
    return None


def choose(crypt: CryptRn | None) -> Hash:
    """Return the bcrypt of libxcrypt if the system has it, and its hashes of samples are the package's."""
    if crypt is None:
        return bcrypt.hashpw
    hash_by_libxcrypt = partial(_hash_by_libxcrypt, crypt)
    inputs = [(sample, version + _SAMPLE_SETTING) for sample, version in zip(_SAMPLES, cycle(_VERSIONS))]
    with suppress(ValueError):
        if all(hash_by_libxcrypt(*each) == bcrypt.hashpw(*each) for each in inputs):
            return hash_by_libxcrypt
    structlog.get_logger().warning("libxcrypt_not_used", reason="its bcrypt hashes are not the package's")
    return bcrypt.hashpw


def _hash_by_libxcrypt(crypt: CryptRn, password: bytes, setting: bytes) -> bytes:
    # Under `$2a$`, libxcrypt gives some passwords with bytes above 0x7f a hash that no other bcrypt gives.
    setting_2b = b"$2b$" + setting[4:]
    data = ctypes.create_string_buffer(_DATA_BYTES)
    try:
        hashed = crypt(password, setting_2b, data, _DATA_BYTES)
    finally:
        ctypes.memset(data, 0, _DATA_BYTES)
    # The package refuses stray bits in a salt, which libxcrypt drops.
    if hashed is None or hashed[:_SETTING_BYTES] != setting_2b[:_SETTING_BYTES]:
        raise ValueError("Invalid salt")
    return setting[:4] + hashed[4:]
