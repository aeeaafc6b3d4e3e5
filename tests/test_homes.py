"""Rules of security that have one home in the code. What another place would need to break them fails here."""

import ast
import re
from collections.abc import Iterator
from typing import Any

from sql import schema
from tests.domain.sign_in import test_enumeration
from tests.support.contract import resolved
from tests.test_contract import OPERATIONS
from tests.test_structure import ROOT, SOURCES, STATEMENTS, calls, imports, nodes
from tests.web import test_proofs_of_acts


def sql_bodies() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each statement and function."""
    for name, statement in STATEMENTS.items():
        yield name, re.sub("--.*", "", statement.text)
    for path in sorted(schema.FUNCTIONS.glob("*.sql")):
        for part in re.sub("--.*", "", path.read_text()).split("CREATE OR REPLACE FUNCTION ")[1:]:
            yield part.partition("(")[0], part


def with_sql(pattern: str) -> set[str]:
    return {name for name, body in sql_bodies() if re.search(pattern, body)}


def with_call(*names: str) -> set[str]:
    return {source for source in SOURCES if list(calls(source, *names))}


def test_only_the_guard_and_the_commands_make_a_caller_the_service_role():
    homes = {
        source
        for source in SOURCES
        for node in nodes(source)
        if isinstance(node, ast.Assign) and ast.unparse(node) == "g.actor = 'service_role'"
    }
    assert homes == {"auth/web/guard.py", "auth/cli/commands.py"}
    assert with_call("match") & {source for source in SOURCES if "service_role_keys" in read(source)} == {
        "auth/web/guard.py"
    }
    asking = re.compile(r"access_tokens\.service_role\(")
    assert {source for source in SOURCES if asking.search(read(source))} == {"auth/web/guard.py"}


def test_the_edge_looks_up_what_a_view_says_and_only_grants_answer_by_another_view():
    homes = {
        source
        for source in SOURCES
        for node in nodes(source)
        if isinstance(node, ast.Assign) and "g.route" in {ast.unparse(target) for target in node.targets}
    }
    assert homes == {"auth/web/edge.py", "auth/web/request_context.py"}
    assert with_call("answered_by") == {
        "auth/api/token.py",
        "auth/social/id_token_grant.py",
        "auth/openid/api/openid.py",
    }


def test_only_the_home_of_outgoing_connections_gives_up_a_place_in_the_hashing_queue():
    naming = re.compile(r"\b(let_go|_leave)\b")
    homes = {source for source in SOURCES if naming.search(read(source))}
    assert homes == {"auth/core/net/sockets.py", "auth/core/passwords/hashing.py"}
    # A request without a deadline, which gives the place up, fails.
    assert "deadline = Deadline.current.get()\n" in read("auth/core/net/bounded_http.py")


def read(source: str) -> str:
    return SOURCES[source].read_text()


def test_only_a_sign_in_by_a_provider_looks_a_user_up_by_the_email_that_a_provider_verified():
    of_operators = {"auth/domain/admin/messages.py", "auth/api/admin.py", "auth/sso/administering.py"}
    assert with_call("lock_user_by_email") - of_operators == {"auth/domain/sign_in/external_identities.py"}
    (asked,) = re.findall("by_email = (.+)", read("auth/domain/sign_in/external_identities.py"))
    assert asked == "user is None and identity.is_proved"


def test_one_function_decides_which_email_of_a_provider_is_verified_and_proved():
    made = [(source, call) for source in SOURCES for call in calls(source, "ExternalIdentity")]
    assert [source for source, _call in made] == ["auth/core/providers/client.py"]
    reading = re.compile(r"\.(email_verified|is_trusted|_is_trusted|gives_verified_only)\b")
    assert {source for source in SOURCES if reading.search(read(source))} == {"auth/core/providers/client.py"}


def test_links_are_spent_by_one_function_and_by_get_only_for_programs():
    assert with_call("spend_one_time_token") == {"auth/domain/links/spending.py"}
    assert with_call("by_link") == {"auth/api/verify.py"}
    views = {
        node.name: ast.unparse(node)
        for node in nodes("auth/api/verify.py")
        if isinstance(node, ast.FunctionDef) and "_spend_and_redirect(" in ast.unparse(node)
    }
    assert views.keys() == {"_spend_and_redirect", "verify", "verify_link"}
    assert "'programs' and _is_program()" in views["verify_link"]


# Public operations that take an address and answer by whether its user has a password, which counts and hashes
# equally: tests/core/passwords/test_legacy_hashes.py.
PROVING = {"token", "login_admin", "verify"}


def test_every_public_operation_that_takes_an_address_is_compared_for_known_and_unknown_ones():
    taking = {
        name: operation.path
        for name, operation in OPERATIONS.items()
        if not operation.schemes() and operation.method == "post" and takes_address(operation.description)
    }
    assert taking.keys() >= PROVING
    compared = {path for path, _body, _field in test_enumeration.REQUESTS.values()}
    assert {path for name, path in taking.items() if name not in PROVING} == compared


def takes_address(operation: dict[str, Any]) -> bool:
    body = resolved(operation.get("requestBody", {"content": {}}))
    return any(has_address(resolved(content["schema"])) for content in body["content"].values())


def has_address(described: dict[str, Any]) -> bool:
    parts = [resolved(part) for kind in ("allOf", "anyOf", "oneOf") for part in described.get(kind, [])]
    properties = described.get("properties", {})
    return bool({"email", "phone"} & properties.keys()) or any(map(has_address, parts))


# Operations of a user that change no way to sign in, complete what was begun with the proof, or have a test of
# their own there.
CHANGING_NO_WAY = {
    "logout": "ends sessions",
    "delete_session": "ends a session",
    "confirm_reauthentication": "is the proof",
    "challenge_factor": "begins a second step",
    "verify_factor": "is a second step, or completes what POST /factors began",
    "verify_recovery_code": "is a second step",
    "redeem_recovery_code": "is a second step",
    "finish_passkey_registration": "completes what the options began",
    "rename_passkey": "changes its name",
    "decide_authorization": "by_consent",
}


def test_every_operation_of_a_user_that_changes_a_way_to_sign_in_is_held_against_the_table():
    missing = {
        name
        for name, operation in OPERATIONS.items()
        if operation.schemes() == {"access_token"} and operation.method != "get"
        if not any(
            method == operation.method and re.fullmatch(re.sub(r"{\w+}", "<[^>]+>", operation.path), path)
            for method, path in test_proofs_of_acts.ROUTES
        )
    }
    assert missing == CHANGING_NO_WAY.keys()


# What the name, the language and the picture of a person are taken from, and what searches for them.
SHOWING = {
    "describe_users": "the console's list",
    "use_browser_session": "the name on the pages",
    "visit_gate": "Remote-Name, which tools only show",
    "words_of": "the console's search",
    "may_have": "the console's search",
    "write_message": "the language of a message",
}
READING = {
    "auth/domain/account/changes.py": "writes what the user sends",
    "auth/domain/admin/users.py": "writes what the administrator sends, and compares it",
    "auth/hooks/command.py": "the event of a hook",
    "auth/console/user_page.py": "shows it",
    "auth/openid/claims.py": "the claims of the scope profile",
    "auth/pages/profile.py": "the name that the user may change",
    "auth/core/tokens/access_tokens.py": "the claim of this name",
    "auth/transfer/products.py": "the metadata of another product",
}


def test_nothing_that_decides_reads_what_users_write_about_themselves():
    assert with_sql(r"user_metadata\s*(->|#>|\?|@>)") == SHOWING.keys()
    reading = {
        source
        for source in SOURCES
        for node in nodes(source)
        if ast.unparse(node).endswith(("['user_metadata']", ".user_metadata", ".get('user_metadata')"))
        and isinstance(node, ast.Subscript | ast.Attribute | ast.Call)
        and not isinstance(getattr(node, "ctx", None), ast.Store)
    }
    assert reading == READING.keys()


# Who opens connections, and to what. The first two check each address that they connect to.
CONNECTING = {
    "auth/core/net/bounded_http.py": "what HTTP to foreign addresses goes through",
    "auth/captcha/siteverify.py": "by bounded_http; the operator chose the provider",
    "auth/core/passwords/leaked_ranges.py": "by bounded_http; the range API, or the operator's mirror",
    "auth/core/net/sockets.py": "what else goes to foreign addresses",
    "auth/core/providers/client.py": "by bounded_http; the operator configured the provider",
    "auth/core/providers/id_tokens.py": "by bounded_http; the operator configured the provider",
    "auth/openid/documents/fetched.py": "by bounded_http, to public addresses; documents of clients",
    "auth/delivery/senders/smtp.py": "the operator's mail server",
    "auth/delivery/senders/http_post.py": "by bounded_http; hooks, webhooks and Twilio",
    "auth/operator/doctor/public_url.py": "the operator's doctor",
    "auth/openid/gates/checks.py": "by bounded_http; the operator's doctor",
    "auth/operator/doctor/database.py": "the operator's doctor",
    "auth/operator/backups/rehearsals.py": "a service on this machine",
}


def test_only_named_files_import_what_connects_to_other_machines():
    found = {source for source in SOURCES if {"requests", "smtplib", "urllib3"} & imports(source)}
    assert found | {"auth/core/net/sockets.py"} == CONNECTING.keys()


# Who knows the signatures of Standard Webhooks.
SIGNING = {
    "auth/delivery/senders/http_post.py": "signs what hooks and webhooks are sent",
    "auth/webhooks/command.py": "verifies what it is sent",
}


def test_requests_to_hooks_and_webhooks_are_signed_and_sent_by_one_function():
    assert {source for source in SOURCES if "standardwebhooks" in imports(source)} == SIGNING.keys()
    posting = {source for source in SOURCES if list(calls(source, "post_signed"))}
    assert posting == {"auth/webhooks/events.py", "auth/hooks/http_hooks.py"}


# What waits for a provider or a hook.
_FOREIGN = re.compile(
    r"(\w+\.)*(identify|identify_by_id_token|authorization_url)|(turns\.(call|in_turn)|http_post\.\w+|hooks\.ask|before_user_created\.ask)"
    r"|(issuing\.)?(about_new|about_own|about_refresh|answered)|access_token\.ask"
)
_TRANSACTION = re.compile(r"(\w+\.)*(transaction|act)\(\)")


def waiting_inside(source: str) -> Iterator[str]:
    """Yield the foreign calls inside transactions, also in functions of the same file that these call."""
    functions = {node.name: node for node in nodes(source) if isinstance(node, ast.FunctionDef)}
    for node in nodes(source):
        if not (
            isinstance(node, ast.With) and _TRANSACTION.fullmatch(ast.unparse(node.items[0].context_expr))
        ):
            continue
        waiting, seen = list(node.body), set[str]()
        while waiting:
            for call in ast.walk(waiting.pop()):
                called = ast.unparse(call.func) if isinstance(call, ast.Call) else ""
                if _FOREIGN.fullmatch(called):
                    yield f"{source}: {called}"
                if called in functions.keys() - seen:
                    seen.add(called)
                    waiting += functions[called].body


def test_nothing_waits_for_a_provider_or_a_hook_inside_a_transaction():
    foreign = {
        source
        for source in SOURCES
        for node in nodes(source)
        if isinstance(node, ast.Call)
        if _FOREIGN.fullmatch(ast.unparse(node.func))
    }
    assert len(foreign) > 5
    assert [each for source in SOURCES for each in waiting_inside(source)] == []


def test_statements_that_lock_several_users_lock_them_by_their_id():
    """Without an order, two of them wait for each other; SKIP LOCKED waits for nobody."""
    several = with_sql(
        r"FROM users( AS u)?\s+WHERE (u\.)?id (= ANY|IN) \([^;]*FOR (NO KEY )?UPDATE\b(?! OF \w+ SKIP| SKIP)"
    )
    assert several - with_sql(r"ORDER BY (u\.|users\.)?id\s+FOR (NO KEY )?UPDATE") == set()
    assert {"end_lost_access", "lock_users_of_client"} <= several


# Statements that write to the audit log.
RECORDING = {
    "record_acts": "acts, with their events",
    "record_refusal": "refusals, which are no acts",
    "record_import": "one entry for all batches of an import",
}


def test_an_act_is_recorded_by_one_function_in_the_transaction_of_the_act():
    assert with_sql(r"\bINSERT INTO audit_log\b") == RECORDING.keys()
    outside = {
        (source, ast.unparse(call.args[0]))
        for source in SOURCES
        for call in calls(source, "record", "record_acts")
        if ast.unparse(call.func) in ("audit.record", "queries.record_acts")
        and ast.unparse(call.args[0]) != "tx"
    }
    # A use of a JWT is no change, and the files of keys are no rows.
    assert outside == {("auth/web/guard.py", "latchkey.db"), ("auth/core/keys/rotation.py", "db")}


# Where rows decide whether an address is proved. What else names the columns writes them, or hands them to a client.
PROVED = {"is_proved": "the home"}
_PROVED = r"(?:email|phone)_proved\b"


def test_whether_an_address_is_proved_is_decided_by_one_function():
    decides = rf"\b(?:AND|OR|NOT|WHERE|WHEN|THEN|ON)\s+\(?(?:\w+\.)?{_PROVED}(?!\s*=)|{_PROVED}\s+(?:OR|IS)\b"
    writing = {
        "set_confirmed_at": "null takes the proof back",
        "remove_ways_to_sign_in": "the proof goes with the address",
    }
    found = {
        name
        for name, body in sql_bodies()
        if re.search(decides, re.sub(rf"{_PROVED} = (?:\w+\.)?{_PROVED} AND", "", body))
    }
    assert found == PROVED.keys()
    assert with_sql(rf"{_PROVED} = (?:\w+\.)?{_PROVED} AND") == writing.keys()


# What compares the time of the last refresh for another reason than whether the session has expired.
COMPARING_REFRESHES = {
    "session_expired": "the home",
    "refreshed": "the reuse interval",
    "refresh_act": "whether this request has moved it",
    "use_browser_session": "writes once in five minutes",
    "is_stale_at_gate": "writes once in an hour",
    "active_users": "a figure",
    "count_needs_of_secret": "the secret key of a refresh token",
    "count_sessions_of_old_keys": "the secret key of a refresh token",
}


def test_whether_a_session_has_expired_is_decided_by_one_function():
    compares = r"\brefreshed_at\s*(?:<|>|=(?=\s*now\(\)\s*THEN))"
    assert with_sql(compares) == COMPARING_REFRESHES.keys()
    # The last one shows the time.
    assert with_sql(r"make_interval\(secs => (?::session_)?timebox\)") == {
        "session_expired",
        "timeline_of_sessions",
    }


# Who else reads whether a session was ended: a session that has run out may be ended too, and is removed and listed
# with its reason. What gives something asks `end_of`.
READING_ENDS = {
    "end_of": "the home",
    **dict.fromkeys(("end_access", "end_all_access", "end_any_session", "end_lost_access"), "ends it"),
    **dict.fromkeys(("revoke_client_session", "open_client_session", "has_lost_access"), "ends it"),
    "end_before_deletion": "ends it",
    "has_access": "finds the users of whom something is left to end",
    "write_logout": "tells applications",
    "select_any_session": "shows what an administrator may end",
    "timeline_of_sessions": "tells an expired session from an ended one",
    "delete_expired_sessions": "others are kept by the time of their end",
}


def test_whether_a_session_gives_something_is_not_decided_by_its_end_alone():
    assert with_sql(r"\bended_at IS (NOT )?NULL\b") == READING_ENDS.keys()


def test_the_window_of_refreshes_is_counted_by_one_function():
    assert with_sql(r"WHEN (?:\w+\.)?(?:counted_)?until > now\(\)") == {"refresh_window"}


# Who makes an address of a user who exists another one, or none.
CHANGING_ADDRESSES = {
    "set_address": "the home, for addresses that are proved or that an administrator vouches for",
    "prove_address": "removes what the first proof does not keep",
    "remove_ways_to_sign_in": "removes an address",
    "convert_by_identity": "the verified email of the provider of an anonymous user",
}


def test_an_address_changes_in_one_function():
    assert with_sql(r"\bUPDATE users\b[^;]*?[ ,](?:email|phone) = (?!:)") == CHANGING_ADDRESSES.keys()


# What removes a way to sign in, and who asks then whether one remains, or why not.
REMOVING_WAYS = {
    "auth/domain/account/passkeys.py:_remove": "asks, but for the service role key and commands",
    "auth/domain/account/removal.py:take_away": "asks",
    "auth/domain/admin/users.py:_update": "asks, at the end of what `_remove` began",
    "auth/domain/links/undo.py:_take_back": "asks, or gives an address back",
}


def test_whether_something_remains_that_can_sign_in_is_asked_by_all_that_remove_it():
    # The users of a customer's provider keep their address.
    of_customers = {"adopt_user", "remove_users_of_provider"}
    removing = with_sql(r"\bDELETE FROM identities\b") - of_customers
    assert removing == {"remove_ways_to_sign_in", "prove_address"}
    assert with_sql(r"\bcan_sign_in\(") == {"can_sign_in", "select_can_sign_in"}
    assert with_call("select_can_sign_in") == {"auth/domain/account/removal.py"}
    functions = {
        f"{source}:{node.name}": [
            ast.unparse(call.func) for call in ast.walk(node) if isinstance(call, ast.Call)
        ]
        for source in SOURCES
        for node in nodes(source)
        if isinstance(node, ast.FunctionDef)
    }
    asking = {
        name
        for name, called in functions.items()
        if {"removal.check_remaining", "check_remaining"} & {*called}
    }
    removals = {"queries.remove_ways_to_sign_in", "queries.remove_passkey"}
    removing = {name for name, called in functions.items() if removals & {*called}}
    assert asking == REMOVING_WAYS.keys()
    # The first goes on in `_update`; the second takes an address from a user who never proved it.
    assert removing - asking == {"auth/domain/admin/users.py:_remove", "auth/domain/links/undo.py:_give_back"}


# Who deletes users, and whether an administrator remains.
DELETING = {
    "delete_user": "the caller who is not the last one, or whom an administrator or the service role key chose",
    "delete_unused_sign_up": "asks",
    "decline_signup": "asks",
    "delete_unproved_user": "a command, which makes an administrator",
    "delete_anonymous_users": "those without the role",
    "delete_unused_users": "those without the role",
}


def test_whether_an_administrator_remains_is_decided_by_one_function():
    assert with_sql(r"\bDELETE FROM users\b") == DELETING.keys()
    assert with_sql(r"\bis_last_administrator\(") == {
        "is_last_administrator",
        "select_is_last_administrator",
        *(name for name, reason in DELETING.items() if reason == "asks"),
    }
    assert with_call("select_is_last_administrator") == {"auth/domain/account/changes.py"}


# The verbs of the glossary in docs/architecture.md, and the words that names of functions do not use for them.
SECOND_WORDS = {
    "redirect": "see_other|go_on|arrive|forward|send_to|to_own|to_provider",
    "notify": "tell|inform|alert",
    "record": "audit|store_act|log_act",
    "refuse": "reject|forbid|disallow",
}


def test_names_of_functions_have_one_verb_for_each_thing():
    page = (ROOT / "docs" / "architecture.md").read_text()
    assert SECOND_WORDS.keys() <= set(re.findall(r"^\| (\w+) \| [^|]+ \| `", page, re.MULTILINE))
    second = re.compile(rf"_?({'|'.join(SECOND_WORDS.values())})(_|$)")
    named = [
        (source, node.name)
        for source in SOURCES
        for node in nodes(source)
        if isinstance(node, ast.FunctionDef) and second.match(node.name)
    ]
    assert named == []


def test_browsers_are_redirected_by_one_function():
    homes = {
        (source, node.name)
        for source in SOURCES
        for node in nodes(source)
        if isinstance(node, ast.FunctionDef) and "{'Location': " in ast.unparse(node)
    }
    assert homes == {("auth/domain/sessions/token_response.py", "redirect")}
