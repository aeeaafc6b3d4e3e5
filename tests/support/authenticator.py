"""A software authenticator: it makes credentials and assertions as a browser sends them, and wrong ones."""

import base64
import hashlib
import json
import secrets
import sys
from dataclasses import dataclass, field
from typing import Any

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa

ORIGIN = "http://localhost:8000"
AAGUID = bytes(16)
ES256, EDDSA, RS256, ES384 = -7, -8, -257, -35
PRESENT, VERIFIED, SYNCED, ATTESTED = 1, 4, 8, 64


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(f"{text}===")


class Key:
    """A private key of a COSE algorithm."""

    def __init__(self, algorithm: int) -> None:
        self.algorithm = algorithm
        self._key: Any = {
            ES256: lambda: ec.generate_private_key(ec.SECP256R1()),
            ES384: lambda: ec.generate_private_key(ec.SECP384R1()),
            EDDSA: ed25519.Ed25519PrivateKey.generate,
            RS256: lambda: rsa.generate_private_key(65537, 2048),
        }[algorithm]()

    @property
    def cose(self) -> bytes:
        """The public key as CBOR (RFC 9053)."""
        if self.algorithm == EDDSA:
            return cbor2.dumps({1: 1, 3: EDDSA, -1: 6, -2: self._key.public_key().public_bytes_raw()})
        numbers = self._key.public_key().public_numbers()
        if self.algorithm == RS256:
            return cbor2.dumps({1: 3, 3: RS256, -1: numbers.n.to_bytes(256), -2: numbers.e.to_bytes(3)})
        curve, size = (1, 32) if self.algorithm == ES256 else (2, 48)
        point = {-2: numbers.x.to_bytes(size), -3: numbers.y.to_bytes(size)}
        return cbor2.dumps({1: 2, 3: self.algorithm, -1: curve} | point)

    def sign(self, data: bytes) -> bytes:
        if self.algorithm == EDDSA:
            return self._key.sign(data)
        if self.algorithm == RS256:
            return self._key.sign(data, padding.PKCS1v15(), hashes.SHA256())
        return self._key.sign(data, ec.ECDSA(hashes.SHA256() if self.algorithm == ES256 else hashes.SHA384()))


@dataclass
class Passkey:
    """A credential in the authenticator."""

    rp_id: str
    user_handle: bytes
    key: Key
    id: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    counter: int = 0


@dataclass
class Authenticator:
    """Answers options like `navigator.credentials`. The parameters of each method are an attacker's changes."""

    origin: str = ORIGIN
    algorithm: int = ES256
    is_verified: bool = True
    counts: bool = True
    is_synced: bool = False
    passkeys: list[Passkey] = field(default_factory=list)

    def create(self, options: dict[str, Any], **changes: Any) -> dict[str, Any]:
        """Return the JSON of a new credential, and keep it."""
        algorithm = changes.pop("algorithm", self.algorithm)
        rp_id = changes.pop("rp_id", options["rp"]["id"])
        passkey = Passkey(rp_id, decode(options["user"]["id"]), Key(algorithm))
        passkey.id = changes.pop("credential_id", passkey.id)
        self.passkeys.append(passkey)
        length = len(passkey.id).to_bytes(2)
        attested = AAGUID + length + passkey.id + passkey.key.cose
        client_data = self._client_data("webauthn.create", options, changes)
        data = self._data(passkey, ATTESTED, changes) + attested
        attestation = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
        assert not changes, f"unknown: {changes}"
        return _credential(
            passkey.id,
            clientDataJSON=encode(client_data),
            attestationObject=encode(attestation),
            transports=["internal", "hybrid"],
        )

    def get(self, options: dict[str, Any], passkey: Passkey | None = None, **changes: Any) -> dict[str, Any]:
        """Return the JSON of an assertion by the newest credential that the options allow."""
        allowed = {decode(credential["id"]) for credential in options.get("allowCredentials", [])}
        passkey = passkey or [each for each in self.passkeys if not allowed or each.id in allowed][-1]
        handle = changes.pop("user_handle", passkey.user_handle)
        credential_id = changes.pop("credential_id", passkey.id)
        if self.counts:
            passkey.counter += 1
        key = changes.pop("key", passkey.key)
        client_data = self._client_data("webauthn.get", options, changes)
        rp_id = changes.pop("rp_id", options["rpId"])
        data = self._data(passkey, 0, changes, rp_id)
        signature = key.sign(data + hashlib.sha256(client_data).digest())
        assert not changes, f"unknown: {changes}"
        return _credential(
            credential_id,
            clientDataJSON=encode(client_data),
            authenticatorData=encode(data),
            signature=encode(signature),
            **({} if handle is None else {"userHandle": encode(handle)}),
        )

    def _client_data(self, kind: str, options: dict[str, Any], changes: dict[str, Any]) -> bytes:
        members = {
            "type": changes.pop("type", kind),
            "challenge": changes.pop("challenge", options["challenge"]),
            "origin": changes.pop("origin", self.origin),
            "crossOrigin": changes.pop("cross_origin", False),
        }
        return json.dumps(members).encode()

    def _data(self, passkey: Passkey, flags: int, changes: dict[str, Any], rp_id: str | None = None) -> bytes:
        flags |= PRESENT if changes.pop("is_present", True) else 0
        flags |= VERIFIED if changes.pop("is_verified", self.is_verified) else 0
        flags |= SYNCED if self.is_synced else 0
        counter = changes.pop("counter", passkey.counter)
        return (
            hashlib.sha256((rp_id or passkey.rp_id).encode()).digest() + bytes([flags]) + counter.to_bytes(4)
        )


def _credential(credential_id: bytes, **response: Any) -> dict[str, Any]:
    return {
        "id": encode(credential_id),
        "rawId": encode(credential_id),
        "response": response,
        "type": "public-key",
        "clientExtensionResults": {},
        "authenticatorAttachment": "platform",
    }


def main() -> None:
    """Answer the lines of a browser of tests/system/clients: `{"method": "create", "options": {…}}`.

    With `"unasked": true`, the browser makes the passkey by itself: nobody is present.
    """
    authenticator = Authenticator(origin=sys.argv[1])
    for line in sys.stdin:
        call = json.loads(line)
        method = authenticator.create if call["method"] == "create" else authenticator.get
        changes: dict[str, Any] = {"is_present": False, "is_verified": False} if call.get("unasked") else {}
        print(json.dumps(method(call["options"], **changes)), flush=True)


if __name__ == "__main__":
    main()
