"""Encryption under a passphrase, in the format of age (https://c2sp.org/age), which `age -d` can read.

The age packages encrypt under a passphrase only in memory, and a backup may not fit there.
"""

import base64
import os
import re
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hmac import HMAC
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

_VERSION = b"age-encryption.org/v1\n"
_STANZA = re.compile(rb"-> scrypt ([A-Za-z0-9+/]{22}) ([1-9][0-9]?)\n")
_BODY = re.compile(rb"([A-Za-z0-9+/]{43})\n")
_MAC = re.compile(rb"--- ([A-Za-z0-9+/]{43})\n")
_LONGEST_LINE = 1024
_WORK_FACTOR = 17  # scrypt takes 128 MiB
_LARGEST_WORK_FACTOR = 20
_FILE_KEY_LENGTH = 16
_CHUNK = 64 * 1024
_TAG_LENGTH = 16


class CannotDecrypt(Exception):
    """A line for the operator: the passphrase is wrong, or the file is damaged or not one of ours."""


def encrypt(pieces: Iterable[bytes], passphrase: str) -> Iterator[bytes]:
    file_key, salt, nonce = os.urandom(_FILE_KEY_LENGTH), os.urandom(16), os.urandom(16)
    wrapped = _wrapping_cipher(passphrase, salt, _WORK_FACTOR).encrypt(bytes(12), file_key, None)
    header = _VERSION + b"-> scrypt %s %d\n%s\n---" % (_encode(salt), _WORK_FACTOR, _encode(wrapped))
    yield header + b" " + _encode(_header_mac(file_key, header).finalize()) + b"\n" + nonce
    cipher = ChaCha20Poly1305(_derive(file_key, nonce, b"payload"))
    buffer, count = bytearray(), 0
    for piece in pieces:
        buffer += piece
        while len(buffer) > _CHUNK:
            yield cipher.encrypt(_nonce(count, is_last=False), bytes(buffer[:_CHUNK]), None)
            del buffer[:_CHUNK]
            count += 1
    yield cipher.encrypt(_nonce(count, is_last=True), bytes(buffer), None)


def decrypt(file: BinaryIO, passphrase: str) -> Iterator[bytes]:
    """Yield the plaintext. Each piece is authentic, but only the end proves that none is missing.

    Raises `CannotDecrypt`.
    """
    file_key = _read_header(file, passphrase)
    cipher = ChaCha20Poly1305(_derive(file_key, file.read(16), b"payload"))
    count, chunk = 0, file.read(_CHUNK + _TAG_LENGTH)
    while True:
        following = file.read(_CHUNK + _TAG_LENGTH)
        try:
            plaintext = cipher.decrypt(_nonce(count, is_last=not following), chunk, None)
        except InvalidTag:
            raise CannotDecrypt("it is truncated or was altered") from None
        if not plaintext and count:
            raise CannotDecrypt("it was altered: its last chunk is empty")
        yield plaintext
        if not following:
            return
        count, chunk = count + 1, following


def _read_header(file: BinaryIO, passphrase: str) -> bytes:
    lines = [file.readline(_LONGEST_LINE) for _ in range(4)]
    stanza, body, mac = _STANZA.fullmatch(lines[1]), _BODY.fullmatch(lines[2]), _MAC.fullmatch(lines[3])
    if lines[0] != _VERSION or not stanza or not body or not mac:
        raise CannotDecrypt("it is not a file that was encrypted under a passphrase, or its head was altered")
    work_factor = int(stanza[2])
    if work_factor > _LARGEST_WORK_FACTOR:
        raise CannotDecrypt(f"its work factor {work_factor} is over {_LARGEST_WORK_FACTOR}")
    try:
        cipher = _wrapping_cipher(passphrase, _decode(stanza[1]), work_factor)
        file_key = cipher.decrypt(bytes(12), _decode(body[1]), None)
        _header_mac(file_key, b"".join(lines[:3]) + b"---").verify(_decode(mac[1]))
    except (InvalidTag, InvalidSignature):
        raise CannotDecrypt("the passphrase is wrong, or its head was altered") from None
    if len(file_key) != _FILE_KEY_LENGTH:
        raise CannotDecrypt("its key has the wrong length")
    return file_key


def _wrapping_cipher(passphrase: str, salt: bytes, work_factor: int) -> ChaCha20Poly1305:
    scrypt = Scrypt(salt=b"age-encryption.org/v1/scrypt" + salt, length=32, n=2**work_factor, r=8, p=1)
    return ChaCha20Poly1305(scrypt.derive(passphrase.encode()))


def _derive(file_key: bytes, salt: bytes | None, purpose: bytes) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=32, salt=salt, info=purpose).derive(file_key)


def _header_mac(file_key: bytes, header: bytes) -> HMAC:
    mac = HMAC(_derive(file_key, None, b"header"), hashes.SHA256())
    mac.update(header)
    return mac


def _nonce(count: int, *, is_last: bool) -> bytes:
    return count.to_bytes(11) + bytes([is_last])


def _encode(data: bytes) -> bytes:
    return base64.b64encode(data).rstrip(b"=")


def _decode(text: bytes) -> bytes:
    data = base64.b64decode(text + b"=" * (-len(text) % 4))
    if _encode(data) != text:
        raise CannotDecrypt("its head was altered")
    return data
