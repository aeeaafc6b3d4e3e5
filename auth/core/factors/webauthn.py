"""WebAuthn with py_webauthn: options for browsers, and the verification of their responses.

A security key, which is a second factor, proves that the user is present; a passkey also verifies the user,
by a PIN or biometrics. Nobody is present when a browser makes a passkey unasked: the first use verifies the
user.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypedDict, TypeVar
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
from webauthn.authentication.verify_authentication_response import VerifiedAuthentication as Assertion
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

from auth.core import constants
from auth.core.settings import Settings

TRANSPORTS = {transport.value for transport in AuthenticatorTransport}
WRONG_SIGNATURE = "Could not verify authentication signature"  # the message of py_webauthn
# An ES256 key (the base point of P-256), to verify signatures of unknown credentials against.
NOBODYS_KEY = bytes.fromhex(
    "a5010203262001"
    "2158206b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"
    "2258204fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"
)
_ALGORITHMS = [Algorithm.ECDSA_SHA_256, Algorithm.EDDSA, Algorithm.RSASSA_PKCS1_v1_5_SHA_256]
HANDLE_BYTES = 16  # of a user: the UUID
MOST_ID_BYTES = 1023  # WebAuthn, section 4, "Credential ID"
# OpenSSL takes milliseconds to verify a signature by a larger key.
_RSA_BITS = range(2048, 4097)
# Products by AAGUID (WebAuthn, section 6.5.1). Without attestation anyone can send an AAGUID, so it only
# gives a passkey its name.
_AUTHENTICATORS = {
    "08987058-cadc-4b81-b6e1-30de50dcbe96": "Windows Hello",
    "0ea242b4-43c4-4a1b-8b17-dd6d0b6baec6": "Keeper",
    "50726f74-6f6e-5061-7373-50726f746f6e": "Proton Pass",
    "531126d6-e717-415c-9320-3d9aa6981239": "Dashlane",
    "53414d53-554e-4700-0000-000000000000": "Samsung Pass",
    "6028b017-b1d4-4c02-b4b3-afcdafc96bb2": "Windows Hello",
    "9ddd1817-af5a-4672-a2b9-3e3dd95000a9": "Windows Hello",
    "adce0002-35bc-c60a-648b-0b25f1f05503": "Chrome on Mac",
    "b84e4048-15dc-4dd0-8640-f4f60813c8af": "NordPass",
    "bada5566-a7aa-401f-bd96-45619a55120d": "1Password",
    "d548826e-79b4-db40-a3d8-11116f7e8349": "Bitwarden",
    "dd4ec289-e01d-41c9-bb89-70fa845d4bf2": "iCloud Keychain",
    "ea9b8d66-4d01-1d21-3ce4-b6b48cb575d4": "Google Password Manager",
    "fbfc3007-154e-4ecc-8c0b-6e020557d7bd": "iCloud Keychain",
    "fdb141b2-5d84-443e-8a35-4698c205a502": "KeePassXC",
}

T = TypeVar("T")


class Credential(Protocol):
    """The row of a factor with a credential."""

    @property
    def credential_id(self) -> memoryview | None: ...
    @property
    def transports(self) -> list[str] | None: ...


class InvalidResponse(Exception):
    """The message describes what is wrong with an authenticator's response."""


class NewCredential(TypedDict):
    """The columns of a credential."""

    credential_id: bytes
    public_key: bytes
    sign_count: int
    transports: list[str]
    aaguid: str
    backup_eligible: bool
    backed_up: bool


class RelyingParty:
    def __init__(self, settings: Settings) -> None:
        self.id = settings.webauthn_rp_id
        self.origins = list(settings.webauthn_origins)
        self._name = urlsplit(settings.site_url).hostname or self.id

    def creation_options(
        self,
        user_id: str,
        user_name: str,
        excluded: Sequence[Credential],
        *,
        is_passkey: bool,
        is_unasked: bool = False,
    ) -> tuple[bytes, dict[str, Any]]:
        """Return a challenge and its options. `excluded` are rows of the user's credentials.

        `is_unasked` if the browser may make a passkey by itself.
        """
        resident_key = ResidentKeyRequirement.REQUIRED if is_passkey else ResidentKeyRequirement.DISCOURAGED
        options = generate_registration_options(
            rp_id=self.id,
            rp_name=self._name,
            user_id=user_handle(user_id),
            user_name=user_name,
            timeout=constants.CHALLENGE_LIFETIME * 1000,
            authenticator_selection=AuthenticatorSelectionCriteria(
                resident_key=resident_key,
                # Browsers refuse conditional mediation with a required verification.
                user_verification=_verification(is_passkey and not is_unasked),
            ),
            exclude_credentials=[_descriptor(row) for row in excluded],
            supported_pub_key_algs=_ALGORITHMS,
        )
        return options.challenge, options_to_json_dict(options)

    def request_options(
        self, allowed: Sequence[Credential] = (), *, is_passkey: bool
    ) -> tuple[bytes, dict[str, Any]]:
        """Return a challenge and its options. The authenticator lists passkeys by itself."""
        options = generate_authentication_options(
            rp_id=self.id,
            timeout=constants.CHALLENGE_LIFETIME * 1000,
            allow_credentials=[_descriptor(row) for row in allowed],
            user_verification=_verification(is_passkey),
        )
        return options.challenge, options_to_json_dict(options)

    def verify_creation(
        self,
        response: Mapping[str, object],
        challenge: bytes,
        *,
        is_passkey: bool,
        is_unasked: bool = False,
    ) -> NewCredential:
        """Verify a response to creation options, and return its columns. Raises `InvalidResponse`."""
        credential = _checked(lambda: parse_registration_credential_json(dict(response)))
        verified = _checked(
            lambda: verify_registration_response(
                credential=credential,
                expected_challenge=challenge,
                expected_rp_id=self.id,
                expected_origin=self.origins,
                require_user_presence=not is_unasked,
                require_user_verification=is_passkey and not is_unasked,
                supported_pub_key_algs=_ALGORITHMS,
            )
        )
        _refuse_frame(credential.response.client_data_json)
        if credential.raw_id != verified.credential_id or len(credential.raw_id) > MOST_ID_BYTES:
            raise InvalidResponse("the id is not that of the new credential")
        check_public_key(verified.credential_public_key)
        return {
            "credential_id": verified.credential_id,
            "public_key": verified.credential_public_key,
            "sign_count": verified.sign_count,
            "transports": [transport.value for transport in credential.response.transports or []],
            "aaguid": verified.aaguid,
            "backup_eligible": verified.credential_device_type is CredentialDeviceType.MULTI_DEVICE,
            "backed_up": verified.credential_backed_up,
        }

    def verify_assertion(
        self, response: AuthenticationCredential, challenge: bytes, public_key: bytes, *, is_passkey: bool
    ) -> Assertion:
        """Verify a response to request options, except its counter. Raises `InvalidResponse`."""
        assertion = _checked(
            lambda: verify_authentication_response(
                credential=response,
                expected_challenge=challenge,
                expected_rp_id=self.id,
                expected_origin=self.origins,
                credential_public_key=public_key,
                credential_current_sign_count=0,
                require_user_verification=is_passkey,
            )
        )
        _refuse_frame(response.response.client_data_json)
        return assertion


def parse_assertion(response: Mapping[str, object]) -> AuthenticationCredential:
    """Read the response to request options, not yet verified. Raises `InvalidResponse`."""
    return _checked(lambda: parse_authentication_credential_json(dict(response)))


def check_public_key(public_key: bytes) -> None:
    """Refuse keys of other algorithms or sizes. Raises `InvalidResponse`."""
    if not _checked(lambda: _is_acceptable_key(public_key)):
        raise InvalidResponse("the public key is not one of ES256, EdDSA or RS256")


def authenticator_name(aaguid: str) -> str:
    return _AUTHENTICATORS.get(aaguid, "Passkey")


def user_handle(user_id: str) -> bytes:
    return UUID(user_id).bytes


def _checked(examine: Callable[[], T]) -> T:
    try:
        return examine()
    except Exception as error:  # the parsers raise errors of json, cbor2 and cryptography
        is_of_library = type(error).__module__.startswith("webauthn.")
        message = str(error) if is_of_library and "__cause__" not in str(error) else "it is malformed"
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


def _descriptor(row: Credential) -> PublicKeyCredentialDescriptor:
    transports = [AuthenticatorTransport(transport) for transport in row.transports or ()]
    return PublicKeyCredentialDescriptor(id=bytes(row.credential_id or b""), transports=transports)
