"""The verification of authenticators' responses."""

import uuid
from types import SimpleNamespace
from typing import Any

import cbor2
import pytest

from auth.core.factors.webauthn import InvalidResponse, RelyingParty, parse_assertion
from tests.support.authenticator import EDDSA, ES256, ES384, RS256, Authenticator, Key, decode, encode
from tests.support.cases import cases

USER_ID = str(uuid.uuid4())


@pytest.fixture
def relying_party():
    settings: Any = SimpleNamespace(
        webauthn_rp_id="localhost",
        webauthn_origins=("http://localhost:8000", "http://localhost:3000"),
        site_url="http://localhost:3000/app",
    )
    return RelyingParty(settings)


def register(relying_party, authenticator, *, is_passkey=True, with_key=None, with_id=None, **changes):
    challenge, options = relying_party.creation_options(USER_ID, "alice", [], is_passkey=is_passkey)
    response = authenticator.create(options, **changes)
    if with_id:
        response |= {"id": encode(with_id), "rawId": encode(with_id)}
    if with_key is not None:
        attestation = cbor2.loads(decode(response["response"]["attestationObject"]))
        attestation["authData"] = attestation["authData"][: 37 + 18 + 32] + cbor2.dumps(with_key)
        response["response"]["attestationObject"] = encode(cbor2.dumps(attestation))
    return relying_party.verify_creation(response, challenge, is_passkey=is_passkey)


def sign_in(relying_party, authenticator, credential, *, is_passkey=True, **changes):
    challenge, options = relying_party.request_options(is_passkey=is_passkey)
    assertion = parse_assertion(authenticator.get(options, **changes))
    key = credential["public_key"]
    return relying_party.verify_assertion(assertion, challenge, key, is_passkey=is_passkey)


@pytest.mark.parametrize("algorithm", [ES256, EDDSA, RS256])
def test_passkey_of_each_algorithm_registers_and_signs_in(relying_party, algorithm):
    authenticator = Authenticator(algorithm=algorithm, origin="http://localhost:3000")
    credential = register(relying_party, authenticator)
    assert credential["credential_id"] == authenticator.passkeys[0].id
    assert credential["transports"] == ["internal", "hybrid"]
    assert (credential["sign_count"], credential["backed_up"]) == (0, False)
    assert sign_in(relying_party, authenticator, credential).new_sign_count == 1


FOREIGN = [
    *({"origin": url} for url in ("http://localhost:8001", "https://localhost:8000")),
    {"origin": "http://localhost.evil.example"},
    {"rp_id": "evil.example"},
    {"challenge": encode(bytes(64))},
    *({name: False} for name in ("is_verified", "is_present")),
    {"cross_origin": True},
]


@cases(
    "changes",
    [
        *(*FOREIGN, {"type": "webauthn.get"}, {"algorithm": ES384}),
        *({"with_id": b"another"}, {"credential_id": bytes(1024)}),
        # Keys that are too short, too long, not on the curve, symmetric, of another type, or none.
        *({"with_key": {1: 3, 3: RS256, -1: b"\xff" * length, -2: b"\1\0\1"}} for length in (128, 2048)),
        {"with_key": {1: 2, 3: ES256, -1: 1, -2: bytes(32), -3: b"\1" * 32}},
        {"with_key": {1: 1, 3: ES256, -1: 6, -2: bytes(32)}},
        {"with_key": {1: 2, 3: RS256, -1: 1, -2: bytes(32), -3: b"\1" * 32}},
        {"with_key": {1: 3, 3: ES256, -1: b"\xff" * 256, -2: b"\1\0\1"}},
        *({"with_key": {}}, {"with_key": []}),
    ],
)
def test_registration_with_a_foreign_part_or_an_unusable_key_is_refused(relying_party, changes):
    with pytest.raises(InvalidResponse):
        register(relying_party, Authenticator(), **changes)


@cases("changes", [*FOREIGN, {"type": "webauthn.create"}, {"key": Key(ES256)}, {"key": Key(EDDSA)}])
def test_assertion_with_a_foreign_part_is_refused(relying_party, changes):
    authenticator = Authenticator()
    credential = register(relying_party, authenticator)
    with pytest.raises(InvalidResponse):
        sign_in(relying_party, authenticator, credential, **changes)
    assert sign_in(relying_party, authenticator, credential)


def test_security_key_needs_presence_only(relying_party):
    authenticator = Authenticator(is_verified=False)
    credential = register(relying_party, authenticator, is_passkey=False)
    assert not sign_in(relying_party, authenticator, credential, is_passkey=False).user_verified


MISSING = r"Credential( response)? missing required \w+"
KEY_MEMBERS = {"id": "YQ", "rawId": "YQ", "type": "public-key"}
INCOMPLETE: list[dict[str, Any]] = [{}, {"id": 1}, KEY_MEMBERS | {"response": {}}]
MALFORMED = {"clientDataJSON": "_w", "authenticatorData": "YQ", "signature": "", "userHandle": "a"}


@cases(
    ("response", "creation", "assertion"),
    [
        *((response, MISSING, MISSING) for response in INCOMPLETE),
        (KEY_MEMBERS | {"response": MALFORMED}, MISSING, "it is malformed"),
        (
            KEY_MEMBERS | {"response": MALFORMED | {"attestationObject": "YQ"}},
            "it is malformed",
            "it is malformed",
        ),
    ],
)
def test_malformed_response_is_refused_without_words_of_parsers(relying_party, response, creation, assertion):
    def verify_assertion():
        sent = parse_assertion(response)
        relying_party.verify_assertion(sent, b"challenge", b"\0", is_passkey=True)

    with pytest.raises(InvalidResponse, match=f"^{creation}$"):
        relying_party.verify_creation(response, b"challenge", is_passkey=True)
    with pytest.raises(InvalidResponse, match=f"^{assertion}$"):
        verify_assertion()
