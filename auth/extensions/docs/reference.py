"""openapi.yaml for its page and the search."""

import json
import shlex
from collections.abc import Iterator
from functools import partial
from typing import Any
from urllib.parse import urlencode

import yaml
from markdown_it import MarkdownIt
from markupsafe import Markup

from auth.extensions.docs.guides import ROOT, Section, markdown

OPENAPI = (ROOT / "openapi.yaml").read_bytes()
PAGE = "docs/api"

_Node = dict[str, Any]
_BOUNDS = {
    "minLength": "at least {} characters", "maxLength": "at most {} characters", "minimum": "at least {}",
    "maximum": "at most {}", "minItems": "at least {} items", "maxItems": "at most {} items",
    "pattern": "matches `{}`", "default": "by default `{}`",
}  # fmt: skip


class Reference:
    """openapi.yaml, parsed. Its page renders the nodes of `spec` by these functions."""

    def __init__(self) -> None:
        self.spec: _Node = yaml.load(OPENAPI, yaml.CSafeLoader)
        self._markdown: MarkdownIt = markdown()
        self.operations = [
            self._operation(method, path, item["parameters"], node)
            for path, item in self.spec["paths"].items()
            for method, node in item.items()
            if method != "parameters"
        ]

    def tags(self) -> list[tuple[str, str, str]]:
        """Return the name, title and description of each tag."""
        return [
            (tag["name"], tag["name"].capitalize().replace("Openid", "OpenID"), tag["description"])
            for tag in self.spec["tags"]
        ]

    def sections(self) -> list[Section]:
        """Return the operations for the search."""
        return [
            Section(PAGE, "HTTP API", 3, f"{each['summary']}: {each['method']} {each['path']}",
                    each["operationId"], each["description"])
            for each in self.operations
        ]  # fmt: skip

    def target(self, operation: _Node) -> str:
        """Return the path of an operation with values for its parameters, and the required query."""
        samples = {each["name"]: _sample(each) for each in operation["parameters"]}
        query = {
            each["name"]: samples[each["name"]]
            for each in operation["parameters"]
            if each["in"] == "query" and each.get("required")
        }
        path = operation["path"].format_map(samples)
        return f"{path}?{urlencode(query)}" if query else path

    def curl(self, operation: _Node, base_url: str) -> str:
        """Return a request as a command for a shell."""
        parts = [f"curl -X {operation['method']} {shlex.quote(base_url + self.target(operation))}"]
        if any("client" not in each for each in operation["credentials"]):
            parts.append("-H 'Authorization: Bearer <token>'")
        if operation["content"]:
            parts.append(f"-H 'Content-Type: {next(iter(operation['content']))}'")
        parts += [f"-d {shlex.quote(text)}" for _, text in self.examples(operation["content"])[:1]]
        return " \\\n  ".join(parts)

    def schema_of(self, parameter: _Node) -> _Node:
        """Return the schema of a parameter, whose description says where it is sent."""
        description, place = parameter.get("description", "").strip().rstrip("."), f"In the {parameter['in']}"
        return parameter["schema"] | {"description": f"{description}. {place}" if description else place}

    def headers(self, answer: _Node) -> list[str]:
        return [name for name in answer.get("headers", ()) if not name.startswith("X-")]

    def error_codes(self, answer: _Node) -> list[str]:
        codes = list(answer.get("x-error-codes", ()))
        for body in answer.get("content", {}).values():
            codes += self.fields(body["schema"])[0].get("error_code", {}).get("enum", ())
        return codes

    def examples(self, content: _Node) -> list[tuple[str, str]]:
        """Return the titles and texts of the examples of the first media type."""
        media = next(iter(content), "")
        body = content.get(media, {})
        encode = (
            urlencode if media.endswith("urlencoded") else partial(json.dumps, indent=2, ensure_ascii=False)
        )
        examples = {name: self.resolved(each) for name, each in body.get("examples", {}).items()}
        if "example" in body:
            examples["example"] = {"value": body["example"]}
        return [
            (
                each.get("summary", name.replace("_", " ").capitalize()),
                each["value"] if isinstance(each["value"], str) else encode(each["value"]),
            )
            for name, each in examples.items()
        ]

    def _operation(self, method: str, path: str, shared: list[_Node], node: _Node) -> _Node:
        parameters = map(self.resolved, [*shared, *node.get("parameters", ())])
        return node | {
            "method": method.upper(),
            "path": path,
            # The introduction explains the header of all requests.
            "parameters": [each for each in parameters if each["name"] != "X-Request-Id"],
            "content": self.resolved(node.get("requestBody", {})).get("content", {}),
            "credentials": [name for either in node.get("security", ()) for name in either],
        }

    def resolved(self, node: _Node) -> _Node:
        while "$ref" in node:
            kind, name = node["$ref"].split("/")[-2:]
            node = self.spec["components"][kind][name]
        return node

    def kind(self, node: _Node) -> Markup:
        """Return the type of a schema, with links to the schemas in it."""
        if "$ref" in node:
            return Markup('<a href="#schema-{0}">{0}</a>').format(node["$ref"].rpartition("/")[2])
        for word in ("allOf", "oneOf", "anyOf"):
            kinds = [
                self.kind(each) for each in node.get(word, ()) if {"$ref", "type", "allOf"} & each.keys()
            ]
            if kinds:
                joint = Markup(" and ") if word == "allOf" else Markup(" or ")
                return joint.join(dict.fromkeys(kinds)) + _nullable(node)
        if node.get("type") == "array":
            return Markup("array of {}").format(self.kind(node["items"])) + _nullable(node)
        name = node.get("format") or node.get("type", "any")
        return Markup("{}").format(name) + _nullable(node)

    def fields(self, node: _Node) -> tuple[_Node, set[str]]:
        """Return the members of an object and of the schemas that it joins, and the required ones."""
        node = self.resolved(node)
        fields: _Node = {}
        required = set(node.get("required", ()))
        for part in node.get("allOf", ()):
            more, needed = self.fields(part)
            fields |= more
            required |= needed
        for name, each in node.get("properties", {}).items():
            fields[name] = self.resolved(fields[name]) | each if name in fields else each
        return fields, required

    def notes(self, node: _Node) -> Markup:
        """Return the description of a schema, with its values and bounds."""
        return Markup(self._markdown.renderInline(". ".join(_sentences(node))))  # noqa: S704 (our own file)

    def text(self, text: str) -> Markup:
        return Markup(self._markdown.render(text))  # noqa: S704 (our own file)


def _sentences(node: _Node) -> Iterator[str]:
    if description := node.get("description", "").strip().rstrip("."):
        yield description
    if values := node.get("enum"):
        yield ("One of " if len(values) > 1 else "") + ", ".join(f"`{_text_of(value)}`" for value in values)
    bounds = [text.format(_text_of(node[name])) for name, text in _BOUNDS.items() if name in node]
    if bounds:
        yield ", ".join(bounds).capitalize() if bounds[0][0] != "m" else ", ".join(bounds)


def _text_of(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _sample(parameter: _Node) -> str:
    schema = parameter["schema"]
    value = parameter.get("example", schema.get("example", next(iter(schema.get("enum", ())), None)))
    return str(value or f"{{{parameter['name']}}}")


def _nullable(node: _Node) -> str:
    return " or null" if node.get("nullable") else ""
