"""What each statement about factors does with a passkey that was not used yet (rule 51)."""

import re

import sql

# A factor is verified: the statements say so, or read `factors_of`.
VERIFIED = {
    "count_verified_factors",
    "describe_users",
    "export_users",
    "factors_of",
    "few_users_with_factor",
    "forget_factors",
    "list_all_ways_to_sign_in",
    "list_factors_of_undo",
    "matching_users",
    "select_ways_to_sign_in",
}
FACTORS_OF = {
    "count_members",
    "find_members",
    "list_members",
    "list_requirements_on_member",
    "list_without_factor",
    "lock_client_session",
    "lock_session",
    "select_api_key_to_use",
    "select_browser_session",
    "select_person",
    "select_token",
    "select_user",
    "user_facts",
    "user_object_of",
}
# They are about apps and security keys, or write a verified factor.
NOT_ABOUT_IT = {
    "activate_factor": "it stays where enrolments go",
    "count_needs_of_secret": "it has no secret",
    "delete_unverified_factors": "it stays where enrolments go",
    "factor_object": "apps and keys",
    "import_factors": "exports have none",
    "insert_factor": "it stays where enrolments go",
    "list_factors": "apps and keys",
    "list_sealed_factors": "it has no secret",
    "list_totp_factors": "apps",
    "rename_factor": "apps and keys",
    "reseal_factor": "it has no secret",
    "restore_factors": "only factors are kept to be restored",
    "select_deciding": "apps and keys",
    "select_factor": "apps and keys",
    "use_totp_step": "apps",
    "write_passkey": "its user makes it",
}
INCLUDED = {
    "delete_anonymous_users": "its user is used",
    "delete_unused_passkeys": "its end",
    "delete_unused_users": "its user is used",
    "find_taken_keys": "a credential is one user's",
    "list_accepted_credentials": "the authenticator keeps it",
    "list_added_since": "the first use would sign in",
    "list_additions": "a thief may have made it",
    "list_credentials": "no authenticator makes a second one",
    "list_deciding_users": "a restored one could sign in",
    "list_factors_and_passkeys": "a reset removes it",
    "list_factors_by_id": "the account removes it",
    "list_passkeys": "with its status",
    "passkey_with_status": "with its status",
    "remove_before_promotion": "an administrator has none",
    "remove_factors": "it is removed, and not kept to be restored",
    "remove_unused_passkeys": "one from before the first factor goes",
    "remove_unproved": "the first proof removes everything",
    "rename_passkey": "its user names it",
    "select_counter": "of its first use",
    "select_credential": "the first use finds it",
    "select_effects": "a reset removes it",
    "select_passkey": "its user removes it, and the first use verifies it",
    "select_second_steps": "the account lists it, and no step asks for it",
    "select_summary": "named as a way in once it is verified",
    "select_user_facts": "the console lists it as not used yet",
    "use_credential": "of its first use",
    "verify_passkey": "the first use",
    "write_unused_passkey": "its beginning",
}
_TABLE = re.compile(
    r"(?:FROM|JOIN|INTO|UPDATE|USING)\s+factors\b|\bfactors_of\(|\bf factors\)|NULL::factors", re.IGNORECASE
)
_BEGINNING = re.compile(r"^(?=-- name: |CREATE OR REPLACE (?:FUNCTION|VIEW) )", re.MULTILINE)
_NAME = re.compile(r"(?:-- name: |CREATE OR REPLACE (?:FUNCTION|VIEW) )(\w+)")


def statements() -> dict[str, str]:
    """Return the text of the statements and functions that read or write factors, by their names."""
    # Nodes of earlier releases, which call those of previous.sql, know no such passkey.
    texts = [path.read_text() for path in sql.DIRECTORY.glob("*.sql")]
    texts += [
        path.read_text()
        for path in (sql.DIRECTORY / "functions").glob("*.sql")
        if path.name != "previous.sql"
    ]
    parts = [part for text in texts for part in _BEGINNING.split(text)]
    return {match[1]: part for part in parts if (match := _NAME.match(part)) and _TABLE.search(part)}


def test_each_statement_about_factors_says_what_it_does_with_a_passkey_that_was_not_used():
    assert statements().keys() == VERIFIED | FACTORS_OF | NOT_ABOUT_IT.keys() | INCLUDED.keys()


def test_statements_of_factors_leave_it_out():
    found = statements()
    asks = re.compile(r"verified_at IS NOT NULL")
    assert [name for name in VERIFIED if not asks.search(found[name])] == []
    assert [
        name for name in FACTORS_OF if "factors_of(" not in found[name] or "FROM factors" in found[name]
    ] == []
