"""Rules of security that have one home in the code: a second home fails here."""

import ast
import re
from collections.abc import Iterator
from typing import Any

from sql import schema
from tests.flows.sign_in import test_enumeration
from tests.source.test_contract import OPERATIONS
from tests.source.test_structure import SOURCES, STATEMENTS, calls, imports, nodes
from tests.support.contract import resolved
from tests.web import test_proofs_of_acts


def sql_bodies() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each statement and function."""
    for name, statement in STATEMENTS.items():
        yield name, re.sub("--.*", "", statement.text)
    for path in sorted(schema.FUNCTIONS.glob("*.sql")):
        for part in re.sub("--.*", "", path.read_text()).split("CREATE OR REPLACE FUNCTION ")[1:]:
            yield part.partition("(")[0], part


def matching_bodies(pattern: str) -> set[str]:
    return {name for name, body in sql_bodies() if re.search(pattern, body)}


def sources_calling(*names: str) -> set[str]:
    return {source for source in SOURCES if list(calls(source, *names))}


def test_only_the_guard_and_the_commands_make_a_caller_the_service_role():
    homes = {
        source
        for source in SOURCES
        for node in nodes(source)
        if isinstance(node, ast.Assign | ast.Call)
        and re.fullmatch(r"g\.actor = 'service_role'|Asked\(.*'service_role'\)", ast.unparse(node))
    }
    assert homes == {"auth/web/guard.py", "auth/cli.py"}
    assert sources_calling("match") & {
        source for source in SOURCES if "service_role_keys" in read(source)
    } == {"auth/web/guard.py"}
    pattern = re.compile(r"access_tokens\.service_role\(")
    assert {source for source in SOURCES if pattern.search(read(source))} == {"auth/web/guard.py"}


def test_function_that_reads_the_facts_about_a_token_asks_the_rules():
    statements = {
        name
        for name, body in sql_bodies()
        if name in STATEMENTS and re.search(r"(user|caller)_facts\(|user_object_from\(", body)
    } - {"insert_sign_up"}  # shows a draft, which no token can read
    assert len(statements) == 12
    rules = {"admit_reader", "refusal_of", "refusal_of_key"}
    readers = {
        f"{source}:{node.name}": called_in(node)
        for source in SOURCES
        for node in nodes(source)
        if isinstance(node, ast.FunctionDef) and called_in(node) & statements
    }
    assert len(readers) > 10
    assert [reader for reader, called in readers.items() if not called & rules] == []


def test_every_way_to_sign_in_opens_its_session_in_one_place():
    """Sessions of applications with grants have another one, which no sign-in calls."""
    names = {name for name, body in sql_bodies() if re.search(r"\bINSERT INTO sessions\b", body)}
    assert names & STATEMENTS.keys() == {"insert_session", "open_client_session"}
    homes = [source for source in SOURCES for _ in calls(source, "insert_session")]
    assert homes == ["auth/flows/sessions/token_response.py"]


def test_each_act_of_a_caller_asks_whether_the_caller_may_do_it():
    functions = {
        f"{source}:{function.name}": function
        for source in SOURCES
        for function in nodes(source)
        if isinstance(function, ast.FunctionDef)
        for call in calls_in(function)
        if ast.unparse(call.func) in ("acts.on", "acts.begin")
    }
    functions_of_callers = {
        name: each for name, each in functions.items() if "caller.user_id" in ast.unparse(each)
    }
    assert len(functions_of_callers) > 20
    # Another act, which decides about the device, asks.
    del functions_of_callers["auth/extensions/openid/device_requests.py:enter"]
    assert [
        name for name, each in functions_of_callers.items() if "admit_caller" not in called_in(each)
    ] == []


def calls_in(function: ast.FunctionDef) -> list[ast.Call]:
    return [node for node in ast.walk(function) if isinstance(node, ast.Call)]


def called_in(function: ast.FunctionDef) -> set[str]:
    """Return the names, without those of modules, of what a function calls."""
    callees = [node.func for node in ast.walk(function) if isinstance(node, ast.Call)]
    return {ast.unparse(each).rpartition(".")[2] for each in callees}


def test_only_one_function_reads_a_cookie():
    pattern = re.compile(r"\.cookies\.get|\.cookies\[|HTTP_COOKIE|parse_cookie")
    homes = {source for source in SOURCES if pattern.search(read(source))}
    assert homes == {"auth/web/cookies.py"}


def read(source: str) -> str:
    return SOURCES[source].read_text()


# Public operations that take an address and answer by whether its user has a password, which counts and hashes
# equally: tests/core/passwords/test_legacy_hashes.py.
PROVING_OPERATIONS = {"token", "login_admin", "verify"}


def test_every_public_operation_that_takes_an_address_is_compared_for_known_and_unknown_ones():
    paths = {
        name: operation.path
        for name, operation in OPERATIONS.items()
        if not operation.schemes() and operation.method == "post" and takes_address(operation.description)
    }
    assert paths.keys() >= PROVING_OPERATIONS
    compared_paths = {path for path, _body, _field in test_enumeration.REQUESTS.values()}
    assert {path for name, path in paths.items() if name not in PROVING_OPERATIONS} == compared_paths


def takes_address(operation: dict[str, Any]) -> bool:
    body = resolved(operation.get("requestBody", {"content": {}}))
    return any(has_address(resolved(content["schema"])) for content in body["content"].values())


def has_address(schema: dict[str, Any]) -> bool:
    parts = [resolved(part) for kind in ("allOf", "anyOf", "oneOf") for part in schema.get(kind, [])]
    properties = schema.get("properties", {})
    return bool({"email", "phone"} & properties.keys()) or any(map(has_address, parts))


# Operations of a user that change no way to sign in, complete what was begun with the proof, or have a test of
# their own there.
CHANGING_NO_WAY = {
    "logout": "ends sessions",
    "delete_session": "ends a session",
    "confirm_reauthentication": "is the proof",
    "challenge_factor": "begins a second step",
    "verify_factor": "is a second step, or completes what POST /factors began",
    "redeem_recovery_code": "is a second step",
    "finish_passkey_registration": "completes what the options began",
    "rename_passkey": "changes its name",
    "decide_authorization": "by_consent",
    "accept_invitation": "a membership signs nobody in",
    "decline_invitation": "an invitation signs nobody in",
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


# The modules that open connections, and their targets. The first two check each address.
CONNECTING_MODULES = {
    "auth/core/net/bounded_http.py": "what HTTP to foreign addresses goes through",
    "auth/core/passwords/leaked_ranges.py": "by bounded_http; the range API, or the operator's mirror",
    "auth/core/net/sockets.py": "what else goes to foreign addresses",
    "auth/core/providers/client.py": "by bounded_http; the operator configured the provider",
    "auth/core/providers/id_tokens.py": "by bounded_http; the operator configured the provider",
    "auth/extensions/openid/documents.py": "by bounded_http, to public addresses; documents of clients",
    "auth/delivery/senders/smtp.py": "the operator's mail server",
    "auth/delivery/senders/http_post.py": "by bounded_http; hooks, webhooks, captchas and Twilio",
    "auth/ops/doctor/public_url.py": "the operator's doctor",
    "auth/ops/doctor/database.py": "the operator's doctor",
    "auth/ops/backups/rehearsals.py": "a service on this machine",
}


def test_only_named_files_import_what_connects_to_other_machines():
    importing = {source for source in SOURCES if {"requests", "smtplib", "urllib3"} & imports(source)}
    assert importing | {"auth/core/net/sockets.py"} == CONNECTING_MODULES.keys()


# The modules that know the signatures of Standard Webhooks.
SIGNING_MODULES = {
    "auth/delivery/senders/http_post.py": "signs what hooks and webhooks are sent",
    "auth/extensions/webhooks/command.py": "verifies what its trial receives",
}


def test_requests_to_hooks_and_webhooks_are_signed_by_one_function():
    assert {source for source in SOURCES if "standardwebhooks" in imports(source)} == SIGNING_MODULES.keys()
    posting = {source for source in SOURCES if list(calls(source, "signed_headers"))}
    assert posting == {"auth/extensions/webhooks/events.py", "auth/extensions/hooks/http_hooks.py"}


# The calls that wait for a provider or a hook.
_FOREIGN = re.compile(
    r"(\w+\.)*(identify|identify_by_id_token|authorization_url)|(turns\.asking|http_post\.\w+|http_hooks\.ask|before_user_created\.ask)"
    r"|(issuing\.)?(about_new|about_own|answered)|access_token\.ask"
)
_TRANSACTION = re.compile(
    r"(\w+\.)*(transaction|act|begin|on|on_found|on_holders|locked|refresh)\(.*\)", re.DOTALL
)


def waiting_inside(source: str) -> Iterator[str]:
    """Yield the foreign calls inside transactions, also in functions of the same file that these call."""
    functions = {node.name: node for node in nodes(source) if isinstance(node, ast.FunctionDef)}
    for node in nodes(source):
        if not (
            isinstance(node, ast.With) and _TRANSACTION.fullmatch(ast.unparse(node.items[0].context_expr))
        ):
            continue
        queue, seen = list(node.body), set[str]()
        while queue:
            for call in ast.walk(queue.pop()):
                callee = ast.unparse(call.func) if isinstance(call, ast.Call) else ""
                if _FOREIGN.fullmatch(callee):
                    yield f"{source}: {callee}"
                if callee in functions.keys() - seen:
                    seen.add(callee)
                    queue += functions[callee].body


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
    """Two statements that lock in no order wait for each other; SKIP LOCKED does not wait."""
    several = matching_bodies(
        r"FROM users( AS u)?\s+WHERE (u\.)?id (= ANY|IN) \([^;]*FOR (NO KEY )?UPDATE\b(?! OF \w+ SKIP| SKIP)"
    )
    assert several - matching_bodies(r"ORDER BY (u\.|users\.)?id\s+FOR (NO KEY )?UPDATE") == set()
    assert {"end_lost_access", "lock_users"} <= several


# Statements that write to the audit log.
RECORDING_STATEMENTS = {
    "record_acts_at": "acts at the time of an act, with their events",
    "record_refused": "refusals, which are no acts",
    "record_import": "one entry for all batches of an import",
}


def test_an_act_is_recorded_by_one_function_in_the_transaction_of_the_act():
    assert matching_bodies(r"\bINSERT INTO audit_log\b") == RECORDING_STATEMENTS.keys()
    outside = {
        (source, ast.unparse(call.args[0]))
        for source in SOURCES
        for call in calls(source, "record", "record_acts")
        if ast.unparse(call.func) in ("audit.record", "queries.record_acts")
        and ast.unparse(call.args[0]) not in ("tx", "act")
    }
    assert outside == set()
