"""Hashes that other services made: they let their users in, and are renewed at the first log-in."""

import hashlib
import hmac

import bcrypt
import django.conf
import pytest

from auth.core.passwords import legacy
from auth.core.passwords.legacy import UnusableHash, encode
from auth.web.context import EXTENSION
from tests.support.answers import assert_error
from tests.support.cases import cases
from tests.support.pages import Visitor
from tests.support.server import at_once, until_served
from tests.support.users import sign_in

FIREBASE = {
    "base64_signer_key": "jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==",
    "base64_salt_separator": "Bw==",
    "rounds": "8",
    "mem_cost": "14",
}
RFC_7914_SCRYPT = "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887"
RFC_7914_PBKDF2 = "4ddcd8f60b98be21830cee5ef22701f9641a4418d04c0414aeff08876b34ab56a1d425a1225833549adb841b51c9b3176a272bdebba1d078478f62b397f33c8d"
RFC_6070_PBKDF2 = "4b007901b765489abead49d926f721d065a429c1"


def hexed(text: str) -> str:
    return encode(bytes.fromhex(text))


# Published test vectors of the makers, in the stored form; their passwords are "password" or in PASSWORDS.
STORED = {
    "argon2id": "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
    "argon2i": "$argon2i$v=19$m=256,t=2,p=1$c29tZXNhbHQ$iekCn0Y3spW+sCcFanM2xBT63UP2sghkUoHLIUpWRS8",
    "scrypt": f"$scrypt$ln=14,r=8,p=1${encode(b'SodiumChloride')}${hexed(RFC_7914_SCRYPT)}",
    "PBKDF2 with SHA-1": f"$pbkdf2-sha1$i=4096${encode(b'salt')}${hexed(RFC_6070_PBKDF2)}",
    "PBKDF2 with SHA-256": f"$pbkdf2-sha256$i=80000${encode(b'NaCl')}${hexed(RFC_7914_PBKDF2)}",
    "phpass of phpBB": "$H$9IQRaTwmfeRo7ud9Fh4E2PdI0S3r.L0",
    "Firebase": legacy.from_firebase(
        "lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ==",
        "42xEC+ixf3L2lw==",
        FIREBASE,
    ),
    "passlib's PBKDF2 with SHA-1": legacy.stored_form(
        "$pbkdf2$1212$OB.dtnSEXZK8U5cgxU/GYQ$y5LKPOplRmok7CZp/aqVDVg8zGI"
    ),
    "passlib's PBKDF2 with SHA-512": legacy.stored_form(
        "$pbkdf2-sha512$1212$RHY0Fr3IDMSVO/RSZyb5ow$eNLfBK.eVozomMr.1gYa17k9B7KIK25NOEshvhrSX.esqY3s.FvWZViXz4KoLlQI.BzY/YTNJOiKc5gBYFYGww"
    ),
}
PASSWORDS = {"scrypt": "pleaseletmein", "PBKDF2 with SHA-256": "Password", "Firebase": "user1password"}
PASSWORDS["phpass of phpBB"] = "test12345"
VECTORS = {name: (stored_hash, PASSWORDS.get(name, "password")) for name, stored_hash in STORED.items()}


@pytest.fixture(scope="session")
def django_hasher():
    """Django's own hashers, by algorithm."""
    if not django.conf.settings.configured:
        django.conf.settings.configure()
    from django.contrib.auth import hashers

    django_hashers = [
        *(hashers.PBKDF2PasswordHasher(), hashers.PBKDF2SHA1PasswordHasher(), hashers.ScryptPasswordHasher()),
        *(hashers.BCryptPasswordHasher(), hashers.BCryptSHA256PasswordHasher()),
    ]
    for each in django_hashers[3:]:
        each.rounds = 4
    return {each.algorithm: each for each in django_hashers}


@pytest.fixture
def set_hash(alice, database):
    def change(password_hash):
        update = "UPDATE users SET password_hash = %(hash)s WHERE id = %(id)s"
        database.run(update, hash=password_hash, id=alice.id)

    return change


@pytest.fixture
def passwords(make_app):
    return make_app(AUTH_BCRYPT_COST="10").extensions[EXTENSION].passwords


class TestLogIn:
    @pytest.mark.parametrize(("stored_hash", "password"), VECTORS.values(), ids=VECTORS)
    def test_foreign_hash_is_accepted_by_simultaneous_log_ins_and_renewed(
        self, server, alice, set_hash, database, stored_hash, password
    ):
        set_hash(stored_hash)
        assert_error(alice.try_to_sign_in(f"{password}x"), 401, "invalid_credentials")
        assert database.value("SELECT password_hash FROM users") == stored_hash
        answers = at_once(4, lambda _: until_served(lambda: sign_in(server, alice.email, password)))
        assert {answer.status_code for answer in answers} == {200}
        assert database.value("SELECT password_hash FROM users").startswith("latchkey1$2b$04$")
        assert alice.try_to_sign_in(password).status_code == 200
        assert_error(alice.try_to_sign_in(f"{password}x"), 401, "invalid_credentials")

    @pytest.mark.parametrize("kind", ["pbkdf2_sha256", "pbkdf2_sha1", "scrypt", "bcrypt", "bcrypt_sha256"])
    def test_password_hashed_by_django_is_accepted(self, alice, set_hash, django_hasher, kind):
        hasher = django_hasher[kind]
        salt = hasher.salt()
        notation = hasher.encode("weak", salt, *([1000] if kind.startswith("pbkdf2") else []))
        set_hash(legacy.stored_form(notation))
        assert_error(alice.try_to_sign_in("Weak"), 401, "invalid_credentials")
        assert alice.try_to_sign_in("weak").status_code == 200

    def test_password_hashed_by_wordpress_is_accepted_at_any_length(self, alice, set_hash, database):
        long = "x" * 100
        prepared = encode(hmac.digest(b"wp-sha384", long.encode(), "sha384")).encode()
        set_hash("$wp" + bcrypt.hashpw(prepared, bcrypt.gensalt(4)).decode().replace("$2b$", "$2y$"))
        assert_error(alice.try_to_sign_in("x" * 99), 401, "invalid_credentials")
        assert alice.try_to_sign_in(long).status_code == 200
        assert database.value("SELECT password_hash FROM users").startswith("latchkey1$")


# Salt and digest of valid forms.
S, D, BCRYPT = "a" * 22, "a" * 43, f"{'a' * 21}u{'a' * 31}"
PARAMETERS = ["$argon2id$v=19$m=4096,t=1,p=1", "$scrypt$ln=14,r=8,p=1", "$pbkdf2-sha256$i=1000"]
PARAMETERS += [f"$fbscrypt$v=1,n=14,r=8,p=1,sk={D}"]


class TestCost:
    """`check_cost` for log-ins at cost 10."""

    @cases(
        "stored_hash",
        [
            *(stored_hash for stored_hash, _ in VECTORS.values()),
            *(f"$2b$12${BCRYPT}", f"latchkey1$2b$12${BCRYPT}", f"$wp$2y$10${BCRYPT}", f"$P$F{'a' * 30}"),
            *(f"$argon2id$v=19$m=65536,t=3,p=4${S}${D}", f"$scrypt$ln=15,r=8,p=1${S}${D}"),
            f"$pbkdf2-sha256$i=600000${S}${D}",
        ],
    )
    def test_hash_of_up_to_four_times_the_cost_is_accepted(self, passwords, stored_hash):
        passwords.check_cost(stored_hash)

    def test_cost_is_relative_to_that_of_a_log_in(self, make_app):
        passwords = make_app(AUTH_BCRYPT_COST="11").extensions[EXTENSION].passwords
        passwords.check_cost(f"$pbkdf2-sha256$i=1000000${S}${D}")

    @cases(
        ("stored_hash", "problem"),
        [
            (f"$2b$13${BCRYPT}", "8.0 log-ins"),
            (f"bcrypt_sha256$2b$14${BCRYPT}", "16.0 log-ins"),
            # Short lanes take longer than their blocks.
            (f"$argon2id$v=19$m=65536,t=3,p=8192${S}${D}", "7.9 log-ins"),
            (f"$argon2id$v=19$m=102400,t=2,p=8${S}${D}", "100 MiB"),
            (f"$scrypt$ln=16,r=8,p=1${S}${D}", "64 MiB"),
            (f"$scrypt$ln=1,r=8,p=51200${S}${D}", "12.0 log-ins"),
            # Two blocks of SHA-256, which Keycloak used to derive.
            (f"$pbkdf2-sha256$i=600000${S}${'a' * 86}", "7.3 log-ins"),
            # The work for the longest password counts.
            (f"$P$G{'a' * 30}", "8.0 log-ins"),
        ],
    )
    def test_more_expensive_hash_is_refused(self, passwords, stored_hash, problem):
        with pytest.raises(UnusableHash, match=problem):
            passwords.check_cost(stored_hash)

    @cases(
        "stored_hash",
        [
            *("", "Correct-Horse-1", "!unusable", "5f4dcc3b5aa765d61d8327deb882cf99"),
            hashlib.sha256(b"password").hexdigest(),
            f"$2x$10${BCRYPT}",
            f"$2b$10${'a' * 52}",
            f"$2b$03${BCRYPT}",
            f"$2b$10${'a' * 21}u{'a' * 30}b",
            f"$2b$10${S}{'a' * 31}",
            f"$argon2id$v=16$m=4096,t=3,p=1${S}${D}",
            *(
                f"$argon2id$v=19${each}${S}${D}"
                for each in ("m=4096,t=0,p=1", "m=4,t=1,p=1", "m=4096,t=1,p=513")
            ),
            # Digests of one and of fifteen bytes, and of more than 512.
            *(
                f"{parameters}${S}{end}"
                for parameters in PARAMETERS
                for end in ("$YQ", "$" + "a" * 20, "$" + "a" * 684)
            ),
            f"$argon2id$v=19$m=4096,t=3,p=1$a${D}",
            *(f"$scrypt$ln={n},r=8,p=1${S}${D}" for n in (0, 99)),
            f"$pbkdf2-sha256$i=0${S}${D}",
            f"$pbkdf2-md5$i=1000${S}${D}",
            f"$P$3{'a' * 30}",
        ],
    )
    def test_malformed_or_unsupported_hash_is_refused(self, passwords, stored_hash):
        with pytest.raises(UnusableHash):
            passwords.check_cost(stored_hash)


# Cheap hashes, and the functions that compute them.
COMPUTED = {
    "argon2": (f"$argon2id$v=19$m=256,t=2,p=2${S}${D}", (legacy.argon2, "core")),
    "scrypt": (f"$scrypt$ln=4,r=8,p=1${S}${D}", (hashlib, "scrypt")),
    "firebase": (f"$fbscrypt$v=1,n=4,r=8,p=1,sk={D}${S}${D}", (hashlib, "scrypt")),
    "pbkdf2": (f"$pbkdf2-sha256$i=1${S}${D}", (hashlib, "pbkdf2_hmac")),
    "phpass": (f"$P$5{'a' * 30}", (legacy, "_phpass_text")),
}


class TestWork:
    """The work of a check at cost 8, in rounds of bcrypt. One of our hashes takes 256."""

    @pytest.fixture
    def passwords(self, make_app):
        return make_app(AUTH_BCRYPT_COST="8").extensions[EXTENSION].passwords

    @pytest.fixture
    def work_of(self, passwords, hashes, monkeypatch):
        """Return the work of a check by a clock that counts work alone, where `function` takes `foreign`."""
        run, in_threads, computed = passwords.threads.run, [], 0.0

        def work():
            return hashes.rounds + computed

        def counting(check):
            before, result = work(), run(check)
            in_threads.append(work() - before)
            return result

        monkeypatch.setattr("time.thread_time", lambda: 3e-4 * work())
        monkeypatch.setattr(passwords.threads, "run", counting)

        def count(stored_hash, text="x", function=None, foreign=0.0):
            def computing(*arguments, **options):
                nonlocal computed
                computed += foreign
                return compute(*arguments, **options)

            if function:
                compute = getattr(*function)
                monkeypatch.setattr(*function, computing)
            before = work()
            assert not passwords.check(text, stored_hash)
            # The hashing threads do all of it.
            assert in_threads.pop() == work() - before
            return work() - before

        return count

    @pytest.mark.parametrize(("stored_hash", "function"), COMPUTED.values(), ids=COMPUTED)
    @pytest.mark.parametrize("foreign", [0.001, 20, 99, 128, 200, 235])
    def test_cheaper_hash_is_followed_by_the_difference(self, work_of, stored_hash, function, foreign):
        assert work_of(None) == 256
        assert work_of(stored_hash, function=function, foreign=foreign) == pytest.approx(256, abs=8)

    @pytest.mark.parametrize("foreign", [256, 700])
    def test_dearer_hash_is_followed_by_a_sixteenth(self, work_of, foreign):
        stored_hash, function = COMPUTED["pbkdf2"]
        assert work_of(stored_hash, function=function, foreign=foreign) == foreign + 16

    # A password of more than 72 bytes is hashed twice for an unknown address.
    @pytest.mark.parametrize(("password", "rounds"), [("x" * 72, 256), ("x" * 73, 512)])
    @pytest.mark.parametrize(
        "stored_hash",
        [
            None,
            *(f"{scheme}$2b$05${BCRYPT}" for scheme in ("", "$wp", "bcrypt_sha256", "latchkey1")),
            *(f"{scheme}$2b$08${BCRYPT}" for scheme in ("", "$wp", "bcrypt_sha256", "latchkey1")),
            # Imported by release 0.2.0, with a digest of two bytes.
            f"$pbkdf2-sha256$i=1${S}$YWE",
        ],
    )
    def test_bcrypt_and_unusable_hashes_are_followed_by_the_difference(
        self, work_of, stored_hash, password, rounds
    ):
        assert work_of(stored_hash, password) == rounds

    def test_every_door_takes_the_work_of_an_unknown_address(self, make_app, carol, database, hashes):
        app = make_app(AUTH_BCRYPT_COST="6")
        visitor, owner = Visitor(app), Visitor(app).signed_in_as(carol)
        client, session = app.test_client(), carol.open_session().on(app.test_client())
        visitor.visit("/sign-in")
        stored_hash = bcrypt.hashpw(b"weak", bcrypt.gensalt(4)).decode()
        database.run("UPDATE users SET password_hash = %(hash)s", hash=stored_hash)
        body = {"email": carol.email, "password": "wrong"}
        rounds = []
        for door in (
            lambda: sign_in(client, "nobody@example.com", "wrong"),
            lambda: sign_in(client, **body),
            lambda: client.post("/login-admin", json=body),
            lambda: visitor.send("/sign-in", **body),
            lambda: owner.send("/account/confirm", current_password="wrong"),
            lambda: session.post("/reauthenticate", json={"current_password": "wrong"}),
            lambda: session.post("/reauthenticate", json={"current_password": "weak"}),
        ):
            before = hashes.rounds
            door()
            rounds.append(hashes.rounds - before)
        assert rounds == 7 * [64]
        before = hashes.rounds
        assert sign_in(client, carol.email, "weak").status_code == 200
        assert hashes.rounds - before == 2 * 64  # the check, and the renewed hash


ARGON2 = {"hashLength": ["32"], "memory": ["256"], "type": ["id"], "version": ["1.3"], "parallelism": ["2"]}


@pytest.mark.parametrize(
    ("data", "digest", "salt"),
    [
        (
            {"hashIterations": 27500, "algorithm": "pbkdf2-sha256", "additionalParameters": {}},
            hashlib.pbkdf2_hmac("sha256", b"password", b"16 bytes of salt", 27500, 64),
            b"16 bytes of salt",
        ),
        (
            {"hashIterations": 2, "algorithm": "argon2", "additionalParameters": ARGON2},
            legacy.decode("bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc"),
            b"somesalt",
        ),
    ],
    ids=["PBKDF2", "Argon2"],
)
def test_keycloak_credential_is_checked(data, digest, salt):
    secret = {"value": encode(digest), "salt": encode(salt), "additionalParameters": {}}
    stored_hash = legacy.from_keycloak({"secretData": secret, "credentialData": data})
    assert legacy.read(stored_hash).matches(b"password")
    assert not legacy.read(stored_hash).matches(b"Password")
