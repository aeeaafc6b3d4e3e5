"""The API of an organization's sign-in: its domains and providers. `{name}` is an id or a short name."""

from collections.abc import Mapping

from flask import Blueprint, Response, jsonify
from flask.typing import ResponseReturnValue
from marshmallow import ValidationError, validates_schema

from auth.extensions.organizations import access, domains, sign_in
from auth.extensions.organizations.routes import changing, reading
from auth.flows.admin.schemas import ProviderChange
from auth.rules.organizations import ADMIN, OWNER
from auth.web import asks_more, fields, schemas
from auth.web.application import JsonResponse
from auth.web.asked import current_asked
from auth.web.context import latchkey
from auth.web.input import read_body
from sql import queries

blueprint = Blueprint("organization_sign_in", __name__)

# An administrative key takes no user's way to sign in, and adds none.
_NO_KEY = None
_NewDomain = schemas.Input.of(domain=fields.NonEmptyText(required=True))


class OrganizationProviderChange(ProviderChange, schemas.Reauthentication):
    """Load it by `ORGANIZATION_PROVIDER_CHANGE`."""

    member_role = fields.MemberRole(allow_none=True)

    @validates_schema
    def adds_nobody_who_manages(self, data: Mapping[str, object], **_kwargs: object) -> None:
        if data.get("member_role") in (OWNER, ADMIN):
            raise ValidationError("must not be owner or admin", "member_role")


ORGANIZATION_PROVIDER_CHANGE = OrganizationProviderChange(partial=True)


class NewOrganizationProvider(OrganizationProviderChange):
    issuer = fields.NonEmptyText(required=True)
    # The one that the customer has registered. Only its agreement is checked.
    redirect_uri = fields.NonEmptyText()


@blueprint.get("/organizations/<name>/domains")
@reading
def list_domains(name: str) -> Response:
    """Return the domains of an organization, with the records that prove them."""
    organization = access.find_admitted(current_asked(), name, OWNER)
    row = queries.list_domains(latchkey.db, organization_id=organization.id)
    return JsonResponse(f'{{"domains": {row.domains}}}')


@blueprint.post("/organizations/<name>/domains")
@changing("change_sign_in")
def name_domain(name: str) -> Response:
    """Name a domain, and return the TXT record that proves it."""
    organization = access.find(current_asked(), name)
    domain = read_body(_NewDomain)["domain"]
    return JsonResponse(domains.name_domain(current_asked(), organization, domain), 201)


@blueprint.post("/organizations/<name>/domains/<domain>")
@changing("change_sign_in")
def prove_domain(name: str, domain: str) -> Response:
    """Look the record up."""
    organization = access.find(current_asked(), name)
    return JsonResponse(domains.prove(current_asked(), organization, domain))


@blueprint.delete("/organizations/<name>/domains/<domain>")
@changing("change_sign_in", _NO_KEY)
@asks_more
def forget_domain(name: str, domain: str) -> Response:
    organization = access.find(current_asked(), name)
    domains.forget(current_asked(), organization, domain, read_body(schemas.Reauthentication))
    return Response(status=204)


@blueprint.get("/organizations/<name>/providers")
@reading
def list_own_providers(name: str) -> Response:
    organization = access.find_admitted(current_asked(), name, OWNER)
    return jsonify(
        providers=sign_in.listed(current_asked(), organization),
        next_redirect_uri=sign_in.next_redirect_uri(current_asked(), organization),
    )


@blueprint.post("/organizations/<name>/providers")
@changing("change_sign_in", _NO_KEY)
@asks_more
def connect_provider(name: str) -> ResponseReturnValue:
    """Connect an OpenID provider, which is off until an owner has signed in with it."""
    organization = access.find(current_asked(), name)
    return jsonify(sign_in.connect(current_asked(), organization, read_body(NewOrganizationProvider))), 201


@blueprint.get("/organizations/<name>/providers/<provider>")
@reading
def get_own_provider(name: str, provider: str) -> Response:
    organization = access.find_admitted(current_asked(), name, OWNER)
    return jsonify(sign_in.shown(current_asked(), organization, provider))


@blueprint.put("/organizations/<name>/providers/<provider>")
@changing("change_sign_in", _NO_KEY)
@asks_more
def update_own_provider(name: str, provider: str) -> Response:
    organization = access.find(current_asked(), name)
    return jsonify(
        sign_in.change(current_asked(), organization, provider, read_body(ORGANIZATION_PROVIDER_CHANGE))
    )


@blueprint.delete("/organizations/<name>/providers/<provider>")
@changing("change_sign_in", _NO_KEY)
@asks_more
def delete_own_provider(name: str, provider: str) -> Response:
    """Delete a provider with the identities of its users, and the memberships that it added."""
    organization = access.find(current_asked(), name)
    sign_in.delete(current_asked(), organization, provider, read_body(schemas.Reauthentication))
    return Response(status=204)
