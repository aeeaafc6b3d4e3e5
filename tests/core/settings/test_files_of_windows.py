"""Files that were written on Windows: with a byte order mark, and two characters at the end of each line."""

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from auth.core.keys import fingerprints
from auth.core.settings import SettingsError
from auth.core.settings.kept_secrets import FILES
from auth.core.tokens import signing_keys
from auth.delivery.senders.smtp_tokens import read_client_key
from auth.ops.backups.restored_secrets import RestoredSecrets

MARK = "\ufeff"


def rewrite(path, text=None):
    """Save a file as an editor of Windows does."""
    lines = (text or path.read_text()).splitlines()
    path.write_bytes("\r\n".join([MARK + lines[0], *lines[1:], ""]).encode())
    path.chmod(0o600)
    return str(path)


def pem_of(key):
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def test_service_role_key_in_a_file_is_known_as_clients_send_it(load, tmp_path):
    path = tmp_path / "var" / FILES["service_role_key"]
    key = path.read_text().strip()
    rewrite(path, f"{key},{'another' * 3}-0123456789")
    # With the mark, too: a node may have told the database so.
    assert load().service_role_key == (key, MARK + key, f"{'another' * 3}-0123456789")


def test_secret_key_in_a_file_is_the_one_that_nodes_have_used(load, tmp_path):
    """A node without the mark would open nothing that one with it has sealed, so they must not pass for one."""
    path = tmp_path / "var" / FILES["secret_key"]
    secret = path.read_text().strip()
    own = fingerprints._fingerprints(load())["secret_key"]
    rewrite(path)
    marked = load()
    assert marked.secret_key == (MARK + secret,)
    of_database = {"AUTH_SECRET_KEY": own}
    with pytest.raises(fingerprints.OtherKeys):
        fingerprints.common(of_database, marked)


@pytest.mark.parametrize("field", ["secret_key", "service_role_key"])
@pytest.mark.parametrize(
    ("text", "problem"),
    [("abcdefgh" * 4, "Repeats itself"), ("0123456789abcdefghijklmnopqrstu", "at least 32 characters")],
)
def test_mark_makes_no_weak_secret_strong(load, tmp_path, field, text, problem):
    rewrite(tmp_path / "var" / FILES[field], text)
    with pytest.raises(SettingsError, match=problem):
        load()


def test_file_with_nothing_but_a_mark_is_empty(load, tmp_path):
    rewrite(tmp_path / "var" / FILES["service_role_key"], "\n")
    with pytest.raises(SettingsError, match="Is empty"):
        load()


def test_restore_reads_the_files_that_it_replaces(load, tmp_path):
    keys = load().jwt_keys
    rewrite(tmp_path / "var" / FILES["jwt_keys"])
    restored = RestoredSecrets(load(), {"jwt_keys": [*signing_keys.read_jwks(keys)]}, {})
    assert restored._current() == {"jwt_keys": signing_keys.read_jwks(keys)}


def test_signing_keys_in_a_file_are_read(load, tmp_path):
    path = tmp_path / "var" / "jwt_keys.json"
    keys = signing_keys.fingerprints(load().jwt_keys)
    rewrite(path)
    assert signing_keys.fingerprints(load().jwt_keys) == keys
    assert signing_keys.fingerprints(load(AUTH_JWT_KEYS=str(path)).jwt_keys) == keys


def test_domains_in_a_file_are_read(load, tmp_path):
    path = rewrite(tmp_path / "domains.txt", "mail.example\nbücher.example # one more")
    expected = {"mail.example", "xn--bcher-kva.example"}
    assert load(AUTH_SIGNUP_BLOCKED_DOMAINS=path).signup_blocked_domains == expected


def test_private_keys_are_read(load, tmp_path):
    path = tmp_path / "key.pem"
    rewrite(path, pem_of(rsa.generate_private_key(65537, 2048)))
    assert read_client_key(path)[0].key_size == 2048
    own = {"AUTH_PROVIDER_APPLE_CLIENT_ID": "app", "AUTH_PROVIDER_APPLE_TEAM_ID": "team"}
    text = pem_of(ec.generate_private_key(ec.SECP256R1())).replace("\n", "\r\n")
    own |= {"AUTH_PROVIDER_APPLE_KEY_ID": "key", "AUTH_PROVIDER_APPLE_PRIVATE_KEY": text}
    assert load(**own).providers["apple"].private_key == text


@pytest.mark.parametrize("text", ["PORT=9001\nAUTH_JWT_AUDIENCE=shop", "AUTH_JWT_AUDIENCE=shop\nPORT=9001"])
def test_each_line_of_the_dotenv_file_is_read(load, tmp_path, text):
    rewrite(tmp_path / ".env", text)
    loaded = load()
    assert (loaded.port, loaded.jwt_audience, loaded.warnings) == (9001, "shop", ())
