"""The level that each operation requires of its caller's session. The SQL function `lacks_level` enforces
it."""

from enum import StrEnum


class Level(StrEnum):
    """A level of assurance, as a statement's parameter `caller_level`.

    AAL1 requires `aal2` of users with an authenticator app or a security key; AAL2, ENROL and PROOF of users
    with a passkey too; SECOND_FACTOR of all users. If `AUTH_MFA_REQUIRED` demands a factor of the user, all
    but SESSION and ENROL do. Only SESSION and ENROL admit tokens of the audience `second_step`. ENROL, PROOF
    and SECOND_FACTOR also require a recent proof.
    """

    ANYONE = "anyone"
    SERVICE_ROLE = "service_role"
    SESSION = "session"
    AAL1 = "aal1"
    AAL2 = "aal2"
    ENROL = "enrol"
    PROOF = "proof"
    SECOND_FACTOR = "second_factor"
