"""openapi.yaml prepared for a page: sections of operations, and schemas."""

import json
import shlex
from collections.abc import Callable, Iterator
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


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


class Reference:
    """openapi.yaml, parsed. Its texts are HTML, and references in operations are replaced."""

    def __init__(self) -> None:
        self._spec: _Node = yaml.load(OPENAPI, yaml.CSafeLoader)
        self._markdown: MarkdownIt = markdown()
        self.version: str = self._spec["info"]["version"]
        summary, _, conventions = self._spec["info"]["description"].partition("\n\n")
        self.summary, self.conventions = self._text(summary), self._text(conventions)
        schemes = self._spec["components"]["securitySchemes"]
        self.credentials = {name: self._text(each["description"]) for name, each in schemes.items()}

    def tags(self) -> list[tuple[str, str, str]]:
        """Return the name, title and description of each tag."""
        return [
            (tag["name"], tag["name"].capitalize().replace("Openid", "OpenID"), tag["description"])
            for tag in self._spec["tags"]
        ]

    def titles(self) -> Iterator[tuple[str, str, _Node]]:
        """Yield the method, path and description of each operation, in the order of the file."""
        for path, item in self._spec["paths"].items():
            shared = item["parameters"]
            for method, node in item.items():
                if method != "parameters":
                    yield method.upper(), path, node | {"parameters": [*shared, *node.get("parameters", ())]}

    def sections(self) -> list[Section]:
        """Return the operations for the search."""
        return [
            Section(PAGE, "HTTP API", 3, f"{node['summary']}: {method} {path}", node["operationId"],
                    node["description"])
            for method, path, node in self.titles()
        ]  # fmt: skip

    def operations(self, tag: str) -> list[_Node]:
        return [
            self._operation(method, path, node) for method, path, node in self.titles() if tag in node["tags"]
        ]

    def curl(self, operation: _Node, base_url: str) -> str:
        """Return a request as a command for a shell."""
        parts = [f"curl -X {operation['method']} {shlex.quote(base_url + operation['target'])}"]
        if any("client" not in each for each in operation["credentials"]):
            parts.append("-H 'Authorization: Bearer <token>'")
        if operation["bodies"]:
            parts.append(f"-H 'Content-Type: {next(iter(operation['bodies']))}'")
        parts += [f"-d {shlex.quote(example)}" for _, example in operation["examples"][:1]]
        return " \\\n  ".join(parts)

    def schemas(self) -> dict[str, tuple[Markup, Markup, list[_Node]]]:
        """Return the kind, the description and the members of each schema."""
        return {
            name: (self._kind(node), self._text(node.get("description", "")), self._members(node))
            for name, node in self._spec["components"]["schemas"].items()
        }

    def _operation(self, method: str, path: str, node: _Node) -> _Node:
        """Return an operation. `target` is its path with values for its parameters, and the required query.

        `examples` are titles and texts of the request's content.
        """
        resolved = map(self._resolved, node["parameters"])
        # The introduction explains the header of all requests.
        parameters = [each for each in resolved if each["name"] != "X-Request-Id"]
        content = self._resolved(node.get("requestBody", {})).get("content", {})
        samples = {each["name"]: _sample(each) for each in parameters}
        target = path.format_map(samples)
        required = [each for each in parameters if each["in"] == "query" and each.get("required")]
        if required:
            target += "?" + urlencode({each["name"]: samples[each["name"]] for each in required})
        bodies = {
            media: (self._kind(body["schema"]), self._members(body["schema"]))
            for media, body in content.items()
        }
        form = next(iter(content), "").endswith("urlencoded")
        return node | {
            "method": method,
            "path": path,
            "target": target,
            "description": self._text(node["description"]),
            "credentials": [name for either in node.get("security", ()) for name in either],
            "parameters": [self._parameter(each) for each in parameters],
            "bodies": bodies,
            "examples": self._examples(next(iter(content.values()), {}), urlencode if form else _json),
            "answers": [self._answer(*each) for each in node["responses"].items()],
        }

    def _parameter(self, node: _Node) -> _Node:
        description, place = node.get("description", "").strip().rstrip("."), f"In the {node['in']}"
        schema = node["schema"] | {"description": f"{description}. {place}" if description else place}
        return self._member(node["name"], schema, node.get("required", False))

    def _answer(self, status: str, node: _Node) -> _Node:
        node = self._resolved(node)
        content = node.get("content", {})
        codes = list(node.get("x-error-codes", ()))
        for body in content.values():
            codes += self._fields(body["schema"])[0].get("error_code", {}).get("enum", ())
        shown = {"status": status, "description": self._text(node["description"]), "error_codes": codes}
        if status >= "400":
            return shown
        return shown | {
            "kinds": [
                Markup("{} ({})").format(self._kind(body["schema"]), media) for media, body in content.items()
            ],
            "headers": [each for each in node.get("headers", ()) if not each.startswith("X-")],
            "examples": self._examples(next(iter(content.values()), {})),
        }

    def _examples(self, body: _Node, encode: Callable[[_Node], str] = _json) -> list[tuple[str, str]]:
        examples = {name: self._resolved(each) for name, each in body.get("examples", {}).items()}
        if "example" in body:
            examples["example"] = {"value": body["example"]}
        return [
            (
                each.get("summary", name.replace("_", " ").capitalize()),
                each["value"] if isinstance(each["value"], str) else encode(each["value"]),
            )
            for name, each in examples.items()
        ]

    def _resolved(self, node: _Node) -> _Node:
        while "$ref" in node:
            kind, name = node["$ref"].split("/")[-2:]
            node = self._spec["components"][kind][name]
        return node

    def _kind(self, node: _Node) -> Markup:
        """Return the type of a schema, with links to the schemas in it."""
        if "$ref" in node:
            return Markup('<a href="#schema-{0}">{0}</a>').format(node["$ref"].rpartition("/")[2])
        for word in ("allOf", "oneOf", "anyOf"):
            kinds = [
                self._kind(each) for each in node.get(word, ()) if {"$ref", "type", "allOf"} & each.keys()
            ]
            if kinds:
                joint = Markup(" and ") if word == "allOf" else Markup(" or ")
                return joint.join(dict.fromkeys(kinds)) + _nullable(node)
        if node.get("type") == "array":
            return Markup("array of {}").format(self._kind(node["items"])) + _nullable(node)
        name = node.get("format") or node.get("type", "any")
        return Markup("{}").format(name) + _nullable(node)

    def _members(self, node: _Node) -> list[_Node]:
        fields, required = self._fields(node)
        return [self._member(name, each, name in required) for name, each in fields.items()]

    def _fields(self, node: _Node) -> tuple[_Node, set[str]]:
        """Return the members of an object and of the schemas that it joins, and the required ones."""
        node = self._resolved(node)
        fields: _Node = {}
        required = set(node.get("required", ()))
        for part in node.get("allOf", ()):
            more, needed = self._fields(part)
            fields |= more
            required |= needed
        for name, each in node.get("properties", {}).items():
            fields[name] = self._resolved(fields[name]) | each if name in fields else each
        return fields, required

    def _member(self, name: str, node: _Node, required: bool) -> _Node:
        """Return a parameter, or a member of an object with its own members."""
        inner = node.get("items", node) if node.get("type") == "array" else node
        return {
            "name": name,
            "kind": self._kind(node),
            "required": required,
            "notes": Markup(self._markdown.renderInline(". ".join(_facts(node)))),  # noqa: S704 (our own file)
            "members": self._members(inner) if "properties" in inner else [],
        }

    def _text(self, text: str) -> Markup:
        return Markup(self._markdown.render(text))  # noqa: S704 (our own file)


def _facts(node: _Node) -> Iterator[str]:
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
