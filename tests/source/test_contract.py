"""openapi.yaml is valid, and agrees with the routes, their guards, limits and errors."""

import json
import re
from collections.abc import Iterator
from itertools import chain, combinations
from typing import Any, NamedTuple

import pytest
import yaml
from jsonschema.exceptions import ValidationError
from openapi_schema_validator import OAS30Validator, oas30_format_checker
from openapi_spec_validator import validate
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Response

from auth import __version__
from auth.web.declarations import route_of
from tests.support import contract
from tests.support.contract import OPENAPI, check, description, line_of, parts, resolved, routes

CONTRACT = description()
# Errors of requests that reach no route.
OUTSIDE_OF_ROUTES = {
    (403, "origin_not_allowed"),
    (404, "not_found"),
    (405, "method_not_allowed"),
    (414, "request_entity_too_large"),
    (431, "request_entity_too_large"),
}
# The security schemes of openapi.yaml that each decorator of auth/web/guard.py lets in.
NO_CREDENTIALS = "none"
SCHEMES = {
    None: set(),
    "access_token": {"access_token"},
    "access_token_or_api_key": {"access_token"},
    "access_token_or_operator": {"access_token", "service_role_key", "service_role_apikey"},
    "admin": {"access_token", "service_role_key", "service_role_apikey"},
    "operator": {"service_role_key", "service_role_apikey"},
    "developer": {NO_CREDENTIALS, "service_role_key", "service_role_apikey"},
    "introspector": {"service_role_key", "service_role_apikey", "client_secret_basic"},
    "client": {NO_CREDENTIALS, "client_secret_basic"},
    "client_token": {"client_access_token"},
}
# Flask's route to the files in static/ of auth/html and the extensions.
STATIC = "static"


class CoreSchema(yaml.SafeLoader):
    """Reads the core schema of YAML 1.2."""


CoreSchema.yaml_implicit_resolvers = {}
for kind, pattern, first in (
    ("null", r"null|~|", "n~"),
    ("bool", r"true|false", "tf"),
    ("int", r"-?(0|[1-9][0-9]*)", "-0123456789"),
    ("float", r"-?(0|[1-9][0-9]*)(\.[0-9]+)?(e[-+][0-9]+)?", "-0123456789"),
):
    CoreSchema.add_implicit_resolver(f"tag:yaml.org,2002:{kind}", re.compile(rf"^({pattern})$"), [*first, ""])


class Operation(NamedTuple):
    """One method of one path in openapi.yaml."""

    method: str
    path: str
    description: dict[str, Any]

    def responses(self) -> dict[int, dict[str, Any]]:
        items = self.description["responses"].items()
        return {int(status): resolved(response) for status, response in items if status != "default"}

    def schemes(self) -> set[str]:
        return {scheme for choice in self.security() for scheme in choice or {NO_CREDENTIALS}}

    def security(self) -> list[dict[str, Any]]:
        return self.description.get("security", CONTRACT["security"])

    def parameters(self) -> list[dict[str, Any]]:
        shared = CONTRACT["paths"][self.path].get("parameters", [])
        return resolved([*shared, *self.description.get("parameters", [])])

    def bodies(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the place of each request and response body, and its schema and examples."""
        for kind, body in resolved(self.description.get("requestBody", {})).get("content", {}).items():
            yield f"request {kind}", body
        for status, response in self.responses().items():
            for kind, body in response.get("content", {}).items():
                yield f"{status} {kind}", body


OPERATIONS = {
    description["operationId"]: Operation(method, path, description)
    for path, item in CONTRACT["paths"].items()
    for method, description in item.items()
    if method != "parameters"
}


NAMES = {(operation.method, operation.path): name for name, operation in OPERATIONS.items()}


def views(app) -> dict[str, Any]:
    """Return the view of each operation, by its operationId."""
    return {NAMES.get((method, path), view.__name__): view for method, path, view in routes(app)}


def layers(view: Any) -> list[tuple[str, str]]:
    """Return the file and name of a view and of its decorators, the outermost first."""
    functions = []
    while view is not None:
        functions.append((view.__code__.co_filename, view.__code__.co_qualname))
        view = getattr(view, "__wrapped__", None)
    return functions


def guard_of(view: Any) -> str | None:
    """Return the name of a view's guard, its outermost decorator. A view for clients has none: it authenticates
    them itself.
    """
    guard, (outermost, _) = route_of(view).guard, layers(view)[0]
    assert outermost.endswith("auth/web/guard.py") is (guard not in (None, "client")), view.__name__
    return guard


def is_limited(view: Any) -> bool:
    return bool(route_of(view).limits)


def examples() -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Yield the place of each example, the example, and its schema."""
    for name, operation in OPERATIONS.items():
        holders = list(operation.bodies())
        holders += [(parameter["name"], parameter) for parameter in operation.parameters()]
        holders += [
            (f"{status} {header}", described)
            for status, response in operation.responses().items()
            for header, described in response["headers"].items()
        ]
        for place, holder in holders:
            values = [example["value"] for example in holder.get("examples", {}).values()]
            values += [holder["example"]] if "example" in holder else []
            for number, value in enumerate(values):
                yield f"{name} {place} {number}", value, holder["schema"]


def open_objects(schema: dict[str, Any], place: str = "it") -> Iterator[str]:
    """Yield the places in a schema where an object may have undescribed members by omission."""
    combined = list(parts(schema))
    closings = {"additionalProperties", "maxProperties"}
    if any(part.get("type") == "object" for part in combined) and not any(
        closings & set(part) for part in combined
    ):
        yield place
    for part in combined:
        for name, member in part.get("properties", {}).items():
            yield from open_objects(member, f"{place}.{name}")
        for choice in part.get("anyOf", []):
            yield from open_objects(choice, place)
        if "items" in part:
            yield from open_objects(part["items"], f"{place}[]")


def nodes(node: Any) -> Iterator[dict[str, Any]]:
    """Yield each object in a part of the description."""
    if isinstance(node, dict):
        yield node
    for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from nodes(each)


def required_members(schema: dict[str, Any]) -> set[str]:
    return {name for part in parts(schema) for name in part.get("required", ())}


def errors_of(operation: Operation) -> set[tuple[int, str]]:
    """Return status and error_code of each error of an operation, also those in the fragment of a redirect."""
    errors = set()
    for status, response in operation.responses().items():
        errors |= {(status, error_code) for error_code in response.get("x-error-codes", ())}
        if status >= 400 and "application/json" in response["content"]:
            schema = response["content"]["application/json"]["schema"]
            # The schema of all errors with this status, or that of GET /health.
            codes = [
                part["properties"]["code"] for part in parts(schema) if "code" in part.get("properties", ())
            ]
            assert codes[-1]["enum"] == [status]
            errors |= {(status, error_code) for error_code in schema["properties"]["error_code"]["enum"]}
    return errors


def test_contract_is_valid_openapi():
    assert CONTRACT["openapi"] == "3.0.3"
    validate(CONTRACT)


def test_contract_is_plain_yaml_which_every_version_reads_alike():
    """Merge keys exist only in YAML 1.1, where `no` is false too. Some readers do not resolve aliases."""
    text = OPENAPI.read_text()
    assert yaml.load(text, CoreSchema) == CONTRACT  # noqa: S506
    assert [
        str(event.start_mark)
        for event in yaml.parse(text, yaml.SafeLoader)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) or getattr(event, "tag", None)
    ] == []


def test_members_of_bodies_have_no_default():
    """openapi-typescript makes them mandatory."""
    assert [
        name
        for name, operation in OPERATIONS.items()
        for _where, body in operation.bodies()
        for node in nodes(body["schema"])
        if "default" in node
    ] == []


def test_schemas_have_no_names_that_code_generators_give():
    """In Go, `NewUser` makes a `User`. Bodies and responses without a name are `SignupRequest` and the like."""
    names = set(CONTRACT["components"]["schemas"])
    generated = {f"{word}{name}" for word in ("New", "Nullable") for name in names}
    for name, operation in OPERATIONS.items():
        title = "".join(map(str.capitalize, name.split("_")))
        generated |= {
            f"{title}{word}" for word in ("Request", "Body", "Data", "Params", "Response", "DefaultResponse")
        }
        for status in operation.responses():
            generated |= {f"{title}{status}", f"{title}{status}Response", f"{title}Response{status}"}
    folded = {name.casefold() for name in generated}
    assert {name for name in names if name.casefold() in folded} == set()


def test_components_of_two_kinds_share_a_name_only_if_they_are_one_type():
    """oapi-codegen makes one Go type of a parameter, a schema and a response, beside its own `Client`."""
    schemas: dict[str, Any] = CONTRACT["components"]["schemas"]
    others: dict[str, Any] = {}
    for kind in ("parameters", "requestBodies", "responses"):
        others |= CONTRACT["components"][kind]
    assert "Client" not in schemas.keys() | others.keys()
    assert {
        name: other
        for name, other in others.items()
        if name in schemas
        for body in other.get("content", {"": {"schema": {}}}).values()
        if body["schema"] != {"$ref": f"#/components/schemas/{name}"}
    } == {}


def test_choices_between_schemas_are_those_that_generated_clients_can_make():
    """Generated clients lose the members beside a choice, take the first that has its required members, and refuse two of
    `oneOf`.
    """
    objects = [node for node in nodes(CONTRACT) if {"anyOf", "oneOf"} & set(node)]
    assert len(objects) > 5
    assert [node for node in objects if not set(node) <= {"anyOf", "description"}] == []
    choices = [resolved(node["anyOf"]) for node in objects if {*chain(*node["anyOf"])} == {"$ref"}]
    assert len(choices) == len(objects)
    assert [
        (earlier, later)
        for each in choices
        for earlier, later in combinations(map(required_members, each), 2)
        if earlier <= later
    ] == []


def test_contract_and_its_examples_have_the_version_of_the_service():
    assert CONTRACT["info"]["version"] == __version__
    answers = CONTRACT["paths"]["/health"]["get"]["responses"]
    examples = [answers[status]["content"]["application/json"]["example"] for status in ("200", "503")]
    assert [example["version"] for example in examples] == [__version__] * 2


def test_operations_say_what_they_do():
    members = ("tags", "summary", "description")
    assert [name for name, each in OPERATIONS.items() if not all(map(each.description.get, members))] == []


def test_operations_describe_a_success():
    assert [name for name, each in OPERATIONS.items() if min(each.responses()) >= 400] == []


def test_arrays_say_what_their_items_are():
    arrays = [node for node in nodes(CONTRACT) if node.get("type") == "array"]
    assert len(arrays) > 50
    assert [node for node in arrays if "items" not in node] == []


def test_every_path_takes_the_clients_id_of_the_request():
    paths = CONTRACT["paths"].items()
    assert [path for path, item in paths if "X-Request-Id" not in str(resolved(item["parameters"]))] == []


def test_bodies_with_required_members_are_required():
    assert [
        name
        for name, each in OPERATIONS.items()
        for body in [resolved(each.description.get("requestBody", {}))]
        for content in body.get("content", {}).values()
        if content["schema"].get("required") and not body.get("required")
    ] == []


def test_operations_have_the_statuses_of_their_kind():
    assert [
        f"openapi.yaml:{line_of(operation.path)}: {name} lacks {missing}"
        for name, operation in OPERATIONS.items()
        if (missing := expected_statuses(operation) - set(operation.responses()))
    ] == []


def expected_statuses(operation: Operation) -> set[int]:
    expected = {500}
    expected |= {414} if any(parameter["in"] == "query" for parameter in operation.parameters()) else set()
    expected |= {400, 401, 503} if operation.security() else set()
    expected |= {403} if operation.security() and NO_CREDENTIALS not in operation.schemes() else set()
    return expected | ({400, 413, 415, 503} if operation.method != "get" else set())


def test_operations_with_a_body_say_that_it_may_be_unreadable():
    assert [
        name
        for name, each in OPERATIONS.items()
        if "application/json" in resolved(each.description.get("requestBody", {})).get("content", {})
        for content in [resolved(each.description["responses"]["400"])["content"]["application/json"]]
        if "bad_json"
        not in content["schema"].get("properties", {}).get("error_code", {}).get("enum", ["bad_json"])
    ] == []


def test_every_body_has_an_example():
    assert [
        (name, place)
        for name, operation in OPERATIONS.items()
        for place, body in operation.bodies()
        if "example" not in body and not body.get("examples")
    ] == []


def reason(problem: ValidationError) -> str:
    """Return what is wrong, without the object that many messages begin with."""
    if problem.context:
        return " or ".join(map(reason, problem.context))
    message = problem.message.replace(repr(problem.instance), "it")
    return f"{message} ({problem.validator} of {problem.json_path})"


def test_examples_match_their_schemas():
    assert len(list(examples())) > 2_000
    problems = [
        f"{reason(problem)}: {place}"
        for place, value, schema in examples()
        for problem in OAS30Validator(schema, format_checker=oas30_format_checker).iter_errors(value)
    ]
    assert not problems, "\n".join(problems)


def test_reason_of_a_wrong_example_is_told_without_the_example():
    schema = {"anyOf": [{"maxProperties": 1}, {"required": ["email"]}]}
    (problem,) = OAS30Validator(schema).iter_errors({"a": 1, "b": 2})
    assert reason(problem) == (
        "it has too many properties (maxProperties of $) or 'email' is a required property (required of $)"
    )


def test_responses_have_no_undescribed_members():
    assert [
        f"openapi.yaml:{line_of(operation.path)}: {name}, {status}: {place} lacks `additionalProperties: false`"
        for name, operation in OPERATIONS.items()
        for status, response in operation.responses().items()
        for body in response.get("content", {}).values()
        for place in open_objects(body["schema"])
    ] == []


def test_combined_objects_have_no_more_members_than_their_parts():
    for name, schema in resolved(CONTRACT["components"]["schemas"]).items():
        bounds = [part["maxProperties"] for part in parts(schema) if "maxProperties" in part]
        if bounds:
            objects = [part for part in parts(schema) if "properties" in part]
            members = [set(part["properties"]) for part in objects]
            assert bounds == [len(set().union(*members))], f"openapi.yaml: maxProperties of {name}"
            # Only users with factors or memberships have the members, and only some sign-ins the others.
            optional = {"factors", "organizations", "weak_password"}
            if name in ("VerifiedSession", "ChangedUser"):
                optional |= {"recent_changes", "password_removed", "ways_to_sign_in"}
            required = [set(part.get("required", ())) for part in objects]
            assert required == [names - optional for names in members], name


def test_every_component_is_used():
    text = OPENAPI.read_text()
    assert [
        name
        for kind, components in CONTRACT["components"].items()
        for name in components
        if kind != "securitySchemes" and f'"#/components/{kind}/{name}"' not in text
    ] == []


def test_docs_errors_lists_exactly_the_errors_of_the_operations():
    page = (OPENAPI.parent / "docs" / "errors.md").read_text()
    rows = re.findall(r"^- (`[\w`, ]+`) \(([0-9, ]+)\): ", page, re.MULTILINE)
    pairs = [
        (int(status), code)
        for codes, statuses in rows
        for code in codes.split(", ")
        for status in statuses.split(",")
    ]
    listed = {(status, code.strip("`")) for status, code in pairs}
    assert len(listed) == len(pairs)
    errors = {error for operation in OPERATIONS.values() for error in errors_of(operation)}
    assert listed == errors | OUTSIDE_OF_ROUTES


HEALTHY = CONTRACT["paths"]["/health"]["get"]["responses"]["200"]["content"]["application/json"]["example"]


def check_health(status: int = 200, path: str = "/health", body: Any = HEALTHY, **headers: str) -> None:
    """Check a response to GET /health."""
    all_headers = {"X-Request-Id": "0123456789", "Content-Type": "application/json"}
    all_headers |= {name.replace("_", "-"): value for name, value in headers.items()}
    sent_headers = {name: value for name, value in all_headers.items() if value}
    check(EnvironBuilder(path).get_request(), Response(json.dumps(body), status, sent_headers))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"status": 418}, "no such status"),
        ({"X_Request_Id": ""}, "X-Request-Id is missing"),
        ({"Content_Type": "text/plain"}, "'text/plain' is not described"),
        ({"body": HEALTHY | {"surprise": 1}}, "Additional properties"),
        ({"path": "/nowhere"}, "GET /nowhere is not in openapi.yaml"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_check_refuses_an_undescribed_response(change, problem, monkeypatch):
    monkeypatch.setattr(contract, "REPORTED", None)
    check_health()
    with pytest.raises(AssertionError, match=re.escape(problem)):
        check_health(**change)
