"""WebAuthn, by py_webauthn: options for browsers, and the verification of their responses.

A security key, which is a second factor, proves that the user is present; a passkey also verifies the user,
by a PIN or biometrics.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from webauthn import (
    generate_authentication_options,
    generate_registration_options,
    verify_authentication_response,
    verify_registration_response,
)
from webauthn.helpers import (
    decode_credential_public_key,
    decoded_public_key_to_cryptography,
    options_to_json_dict,
    parse_authentication_credential_json,
    parse_client_data_json,
    parse_registration_credential_json,
)
from webauthn.helpers.cose import COSEAlgorithmIdentifier as Algorithm
from webauthn.helpers.structs import (
    AuthenticationCredential,
    AuthenticatorSelectionCriteria,
    AuthenticatorTransport,
    CredentialDeviceType,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from auth.settings import Settings

TRANSPORTS = {transport.value for transport in AuthenticatorTransport}
CHALLENGE_LIFETIME = 300  # seconds
WRONG_SIGNATURE = "Could not verify authentication signature"  # the message of py_webauthn
# An ES256 key (the base point of P-256), to verify signatures of unknown credentials against.
NOBODYS_KEY = bytes.fromhex(
    "a5010203262001"
    "2158206b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"
    "2258204fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"
)
_ALGORITHMS = [Algorithm.ECDSA_SHA_256, Algorithm.EDDSA, Algorithm.RSASSA_PKCS1_v1_5_SHA_256]
MOST_ID_BYTES = 1023  # WebAuthn, section 4, "Credential ID"
# OpenSSL takes milliseconds to verify a signature by a larger key.
_RSA_BITS = range(2048, 4097)

Result = TypeVar("Result")


class InvalidResponse(Exception):
    """The message describes what is wrong with an authenticator's response."""


@dataclass(frozen=True)
class Credential:
    """A new credential, and whether its user was verified by the authenticator, not only present."""

    id: bytes
    public_key: bytes
    sign_count: int
    transports: list[str]
    aaguid: str
    is_backup_eligible: bool
    is_backed_up: bool
    is_verified: bool

    @property
    def columns(self) -> dict[str, Any]:
        """The columns of `factors`."""
        return {
            "credential_id": self.id,
            "public_key": self.public_key,
            "sign_count": self.sign_count,
            "transports": self.transports,
            "aaguid": self.aaguid,
            "backup_eligible": self.is_backup_eligible,
            "backed_up": self.is_backed_up,
        }


@dataclass(frozen=True)
class Assertion:
    """The result of a verified assertion. The caller compares the counter when it stores it."""

    sign_count: int
    is_backed_up: bool
    is_verified: bool


class RelyingParty:
    def __init__(self, settings: Settings) -> None:
        self.id = settings.webauthn_rp_id
        self.origins = list(settings.webauthn_origins)
        self._name = urlsplit(settings.site_url).hostname or self.id

    def creation_options(
        self, user_id: str, user_name: str, excluded: Sequence[Any], *, is_passkey: bool
    ) -> tuple[bytes, dict[str, Any]]:
        """Return a challenge, and the options with it. `excluded` are rows of the user's credentials."""
        resident_key = ResidentKeyRequirement.REQUIRED if is_passkey else ResidentKeyRequirement.DISCOURAGED
        options = generate_registration_options(
            rp_id=self.id,
            rp_name=self._name,
            user_id=user_handle(user_id),
            user_name=user_name,
            timeout=CHALLENGE_LIFETIME * 1000,
            authenticator_selection=AuthenticatorSelectionCriteria(
                resident_key=resident_key, user_verification=_verification(is_passkey)
            ),
            exclude_credentials=[_descriptor(row) for row in excluded],
            supported_pub_key_algs=_ALGORITHMS,
        )
        return options.challenge, options_to_json_dict(options)

    def request_options(
        self, allowed: Sequence[Any] = (), *, is_passkey: bool
    ) -> tuple[bytes, dict[str, Any]]:
        """Return a challenge, and the options with it. The authenticator lists passkeys by itself."""
        options = generate_authentication_options(
            rp_id=self.id,
            timeout=CHALLENGE_LIFETIME * 1000,
            allow_credentials=[_descriptor(row) for row in allowed],
            user_verification=_verification(is_passkey),
        )
        return options.challenge, options_to_json_dict(options)

    def verify_creation(
        self, response: Mapping[str, Any], challenge: bytes, *, is_passkey: bool
    ) -> Credential:
        """Verify a response to creation options. Raises `InvalidResponse`."""
        credential = _checked(lambda: parse_registration_credential_json(dict(response)))
        verified = _checked(
            lambda: verify_registration_response(
                credential=credential,
                expected_challenge=challenge,
                expected_rp_id=self.id,
                expected_origin=self.origins,
                require_user_verification=is_passkey,
                supported_pub_key_algs=_ALGORITHMS,
            )
        )
        _refuse_frame(credential.response.client_data_json)
        if credential.raw_id != verified.credential_id or len(credential.raw_id) > MOST_ID_BYTES:
            raise InvalidResponse("the id is not that of the new credential")
        check_public_key(verified.credential_public_key)
        return Credential(
            verified.credential_id,
            verified.credential_public_key,
            verified.sign_count,
            [transport.value for transport in credential.response.transports or []],
            verified.aaguid,
            verified.credential_device_type is CredentialDeviceType.MULTI_DEVICE,
            verified.credential_backed_up,
            verified.user_verified,
        )

    def verify_request(
        self, assertion: AuthenticationCredential, challenge: bytes, public_key: bytes, *, is_passkey: bool
    ) -> Assertion:
        """Verify a response to request options. Raises `InvalidResponse`."""
        verified = _checked(
            lambda: verify_authentication_response(
                credential=assertion,
                expected_challenge=challenge,
                expected_rp_id=self.id,
                expected_origin=self.origins,
                credential_public_key=public_key,
                credential_current_sign_count=0,
                require_user_verification=is_passkey,
            )
        )
        _refuse_frame(assertion.response.client_data_json)
        return Assertion(verified.new_sign_count, verified.credential_backed_up, verified.user_verified)


def parse_assertion(response: Mapping[str, Any]) -> AuthenticationCredential:
    """Read the response to request options, not yet verified. Raises `InvalidResponse`."""
    return _checked(lambda: parse_authentication_credential_json(dict(response)))


def check_public_key(public_key: bytes) -> None:
    """Raises `InvalidResponse`."""
    if not _checked(lambda: _is_acceptable_key(public_key)):
        raise InvalidResponse("the public key is not one of ES256, EdDSA or RS256")


def user_handle(user_id: str) -> bytes:
    return UUID(user_id).bytes


def _checked(act: Callable[[], Result]) -> Result:
    try:
        return act()
    except Exception as error:  # the parsers pass on those of json, cbor2 and cryptography
        is_own = type(error).__module__.startswith("webauthn.")
        message = str(error) if is_own and "__cause__" not in str(error) else "it is malformed"
        raise InvalidResponse(message[:500]) from None


def _refuse_frame(client_data: bytes) -> None:
    # A page of another site could overlay the frame and get the user to click.
    if parse_client_data_json(client_data).cross_origin:
        raise InvalidResponse("the page is in a frame of another site")


def _is_acceptable_key(public_key: bytes) -> bool:
    decoded = decode_credential_public_key(public_key)
    key = decoded_public_key_to_cryptography(decoded)
    return {
        Algorithm.ECDSA_SHA_256: isinstance(key, EllipticCurvePublicKey) and key.key_size == 256,
        Algorithm.EDDSA: isinstance(key, Ed25519PublicKey),
        Algorithm.RSASSA_PKCS1_v1_5_SHA_256: isinstance(key, RSAPublicKey) and key.key_size in _RSA_BITS,
    }.get(decoded.alg, False)


def _verification(is_passkey: bool) -> UserVerificationRequirement:
    return UserVerificationRequirement.REQUIRED if is_passkey else UserVerificationRequirement.PREFERRED


def _descriptor(row: Any) -> PublicKeyCredentialDescriptor:
    transports = [AuthenticatorTransport(transport) for transport in row.transports]
    return PublicKeyCredentialDescriptor(id=bytes(row.credential_id), transports=transports)
