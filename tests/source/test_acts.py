"""Acts lock, read facts, decide in auth/rules, and write: docs/architecture.md."""

import re

import sql
from auth.web.errors import ERRORS
from sql import schema
from tests.source.test_structure import ROOT, STATEMENTS, bodies
from tests.support.previous_release import FILE, parts_of

# A lock with SKIP LOCKED waits for nobody.
LOCKS = re.compile(
    r"\bFOR (?:NO KEY UPDATE|UPDATE|KEY SHARE|SHARE)\b(?: OF \w+)?(?! OF)(?! SKIP LOCKED)\b|\bpg_\w*advisory\w*"
)
ACT_LOCKS = set(re.findall(r"^-- name: (\w+)", (sql.DIRECTORY / "locks.sql").read_text(), re.MULTILINE))
OTHER_LOCKS = {
    "end_lost_access": "a batch, of a set",
    "end_access_of_documents": "a batch, of a set",
    "end_members_of_ended_organizations": "a batch, of a set",
    "end_what_is_over": "a batch, of a set",
    "remove_users_of_provider": "a batch, of a set",
    "remove_users_of_ended_providers": "a batch, of a set",
    "make_way": "a batch of an import, of a set",
    "insert_device_request": "keeps the client that it refers to",
    "insert_oauth_request": "keeps the client and the user that it refers to",
    "know_browser": "one statement beside the act of a sign-in; reads the session again after an act that ends it",
    "clear_failures": "counts come first in an act; record_verdict locks them by its upsert",
    "update_webhook": "a webhook belongs to no user",
    "redeliver_event": "a delivery belongs to no user",
    "lock_webhooks": "a webhook belongs to no user",
    "lock_admin_keys": "an administrative key belongs to no user",
    "lock_openid_keys": "keys belong to no user",
    "lock_key_fingerprints": "keys belong to no user",
    "try_lock_janitor": "of one process among many; waits for nobody",
    "try_lock_restore": "of one process among many; waits for nobody",
    "lock_test_databases": "of the test kit",
}


def current_texts() -> dict[str, str]:
    """Return the texts of statements, SQL functions and views, without comments, but for those that only
    nodes of the previous release call.
    """
    previous = schema.FUNCTIONS / FILE
    old = [part.name for part in parts_of(previous.read_text())] if previous.exists() else []
    texts: dict[str, str] = {}
    for name, text in bodies():
        if name not in old or name in STATEMENTS:
            texts[name] = texts.get(name, "") + re.sub("--.*", "", text)
    for path in schema.FUNCTIONS.glob("*.sql"):
        texts |= {part.name: part.code for part in parts_of(path.read_text()) if part.name and part.is_view}
    return texts


def test_only_acts_lock_what_they_decide_about():
    locking = {name for name, text in current_texts().items() if LOCKS.search(text)} - ACT_LOCKS
    assert sorted(locking - OTHER_LOCKS.keys()) == []
    assert sorted(OTHER_LOCKS.keys() - locking) == []


def test_only_acts_run_the_statements_that_lock():
    paths = [*ROOT.glob("*.py"), *(ROOT / "auth").rglob("*.py"), *(ROOT / "sql").glob("*.py")]
    assert len(ACT_LOCKS) > 5
    assert [
        f"{path.relative_to(ROOT)}: {name}"
        for path in paths
        if path != sql.DIRECTORY / "acts.py"
        for name in sorted(ACT_LOCKS & set(re.findall(r"\bqueries\.(\w+)\(", path.read_text())))
    ] == []


def test_statements_and_sql_functions_decide_about_no_refusal():
    keys = {
        name: sorted(ERRORS.keys() & set(re.findall(r"'([^'\s]+)'", text)))
        for name, text in current_texts().items()
    }
    assert {name: each for name, each in keys.items() if each} == {}
