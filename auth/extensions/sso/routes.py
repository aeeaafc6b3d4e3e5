"""The API of GoTrue: /admin/custom-providers, and POST /sso."""

from collections.abc import Mapping
from typing import TypeAlias

from flask import Blueprint, Response, jsonify
from marshmallow import ValidationError, validates_schema

from auth.extensions.sso import lookup
from auth.flows.admin import providers
from auth.flows.admin.schemas import PROVIDER_CHANGE, ProviderChange
from auth.flows.messages.outgoing import own_url
from auth.web import fields, guard, schemas
from auth.web.application import redirect
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.errors import ApiError, found
from auth.web.fields import is_uuid
from auth.web.input import checked_redirect, read_body, read_query
from auth.web.limits import limited
from sql import queries

blueprint = Blueprint("sso", __name__)

_Named: TypeAlias = "queries.SelectIdentityProvider | queries.SelectProviderOfDomain"

_TYPES = ("oidc", "oauth2")


class NewProvider(ProviderChange):
    provider_type = fields.Choice(*_TYPES, required=True)
    identifier = fields.ProviderIdentifier(required=True)

    @validates_schema
    def has_an_issuer(self, data: Mapping[str, object], **_kwargs: object) -> None:
        if data.get("provider_type") == "oidc" and "issuer" not in data:
            raise ValidationError("is required", "issuer")


_ListQuery = schemas.Input.of(type=fields.Choice(*_TYPES))


class _SsoBody(schemas.Challenged):
    provider_id = fields.Text()
    domain = fields.Text()
    skip_http_redirect = fields.Flag(load_default=False)


@blueprint.post("/sso")
@limited("find_provider")
def sso() -> Response:
    """Return the URL of the page that begins a sign-in with the provider of a domain."""
    body = read_body(_SsoBody)
    row: _Named
    if "provider_id" in body and "domain" in body:
        raise ApiError("both.validation_failed")
    if "provider_id" in body:
        if not is_uuid(body["provider_id"]):
            raise ApiError("validation_failed", "provider_id: must be a UUID")
        row = found(providers.select(latchkey.db, body["provider_id"]), "id.sso_provider_not_found")
    elif "domain" in body:
        row = found(lookup.of_domain(latchkey, body["domain"]), "sso_provider_not_found")
    else:
        raise ApiError("none.validation_failed")
    if not lookup.signs_in(latchkey, row):
        raise ApiError("sso_provider_disabled")
    query = {
        "provider": row.identifier,
        "redirect_to": checked_redirect(current_asked(), body),
        "code_challenge": body.get("code_challenge"),
    }
    # Only a page can set the cookie that binds the sign-in to the browser.
    url = own_url(latchkey.settings, "authorize", {name: value for name, value in query.items() if value})
    return jsonify(url=url) if body["skip_http_redirect"] else redirect(url, 303)


@blueprint.get("/admin/custom-providers")
@guard.operator("providers")
def list_providers() -> Response:
    """List all providers, oldest first."""
    query = read_query(_ListQuery)
    if query.get("type") == "oauth2":
        return jsonify(providers=[])
    asked = current_asked()
    return jsonify(providers=[providers.described(asked, row) for row in providers.listed(asked)])


@blueprint.post("/admin/custom-providers")
@guard.operator(None)
def create_provider() -> tuple[Response, int]:
    body = read_body(NewProvider)
    if body["provider_type"] != "oidc":
        raise ApiError("oauth2.validation_failed", "provider_type: must be oidc")
    return jsonify(providers.create(current_asked(), body)), 201


@blueprint.get("/admin/custom-providers/<identifier>")
@guard.operator("providers")
def get_provider(identifier: str) -> Response:
    asked = current_asked()
    return jsonify(providers.described(asked, providers.found_provider(asked, identifier)))


@blueprint.put("/admin/custom-providers/<identifier>")
@guard.operator("providers")
def update_provider(identifier: str) -> Response:
    return jsonify(providers.change(current_asked(), identifier, read_body(PROVIDER_CHANGE)))


@blueprint.delete("/admin/custom-providers/<identifier>")
@guard.operator(None)
def delete_provider(identifier: str) -> tuple[str, int]:
    """Delete a provider with the identities of its users, and end what it opened."""
    read_body(schemas.AdminInput)
    providers.delete(current_asked(), identifier)
    return "", 204
