"""Simultaneous log-ins with every kind of hash that can be imported, each at the most that it may cost."""

import pytest

from tests.support.answers import assert_error
from tests.support.server import at_once
from tests.support.users import PASSWORD, sign_in

S, D = "a" * 22, "a" * 43


def dearest(cost: int) -> dict[str, str]:
    """Return a hash of each kind at the bounds that `check_cost` sets with this cost of bcrypt."""
    rounds = 4 << cost
    scale = rounds // 64

    def argon2(kind: str, memory: int, lanes: int) -> str:
        passes = (65 * rounds - 16 * lanes) // (memory + 8 * lanes)
        return f"$argon2{kind}$v=19$m={memory},t={passes},p={lanes}${S}${D}"

    return {
        "bcrypt": f"$2b${cost + 2:02}${'a' * 21}u{'a' * 31}",
        "bcrypt of WordPress": f"$wp$2y${cost + 2:02}${'a' * 21}u{'a' * 31}",
        "bcrypt of Django": f"bcrypt_sha256$2b${cost + 2:02}${'a' * 21}u{'a' * 31}",
        "Argon2id with one lane": argon2("id", 1024 * scale, 1),
        "Argon2id with four lanes": argon2("id", 1024 * scale, 4),
        "Argon2i with many passes": argon2("i", 32, 4),
        "Argon2d with many lanes": argon2("d", 1024 * scale, 128 * scale),
        "scrypt with a large N": f"$scrypt$ln={cost + 5},r=8,p=3${S}${D}",
        "scrypt with a large p": f"$scrypt$ln=1,r=8,p={266 * scale}${S}${D}",
        "Firebase": f"$fbscrypt$v=1,n={cost + 5},r=8,p=3,sk={D}${S}${D}",
        "PBKDF2 with SHA-1": f"$pbkdf2-sha1$i={160 * rounds}${S}${'a' * 27}",
        "PBKDF2 with SHA-256": f"$pbkdf2-sha256$i={160 * rounds}${S}${D}",
        "PBKDF2 with SHA-512": f"$pbkdf2-sha512$i={75 * rounds}${S}${'a' * 86}",
        "phpass": f"$P${'./0123456789ABCDEFGHIJ'[cost + 7]}{'a' * 30}",
    }


def set_hash(database, person, stored_hash):
    """Give a user a hash, as an import does."""
    database.run(
        "UPDATE users SET password_hash = %(hash)s WHERE id = %(id)s", hash=stored_hash, id=person.id
    )


@pytest.mark.parametrize("stored_hash", dearest(4).values(), ids=list(dearest(4)))
def test_attempts_are_checked_and_another_user_signs_in(server, parts, database, alice, bob, stored_hash):
    parts.passwords.check_cost(stored_hash)
    set_hash(database, alice, stored_hash)
    log_ins = [*8 * [(alice.email, "x" * 1024)], (bob.email, PASSWORD)]
    *attempts, other = at_once(9, lambda number: sign_in(server, *log_ins[number]))
    for attempt in attempts:
        assert_error(attempt, 401, "invalid_credentials")
    assert other.status_code == 200
