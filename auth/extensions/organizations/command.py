import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click

from auth.cli import (
    INPUT_FILE,
    Unreadable,
    Unusable,
    as_operator,
    ask,
    found_user,
    json_option,
    printable,
    prints_json,
    show,
    yes_option,
)
from auth.core import files
from auth.core.addresses import canonical_typed_email
from auth.core.text.labels import counted
from auth.extensions.organizations import (
    access,
    invitations,
    lifecycle,
    lists,
    members,
    sign_in,
    states,
    transfer,
)
from auth.extensions.organizations.domains import forget as forget_domain
from auth.extensions.organizations.domains import prove_by_command
from auth.extensions.organizations.routes import NewOrganization, Role
from auth.rules.organizations import LEAST_AGE, MEMBER, MOST_AGE
from auth.web.input import check
from sql import queries


@click.group("organizations", short_help="Manage organizations and their members.")
def command() -> None:
    """Manage organizations and their members, as in the console. ORGANIZATION is an ID or a short name."""


# Members that `show` prints.
_FIRST = 100
# A later page reads all rows before it, so there are few of them.
_PAGE = 10_000
_organization = click.argument("name", metavar="ORGANIZATION")
_subject = click.argument("subject")
_role = click.option(
    "--role",
    default=MEMBER,
    show_default=True,
    metavar="ROLE",
    help="Give the role owner, admin or another word.",
)
_DEMANDS: dict[str, dict[str, Any]] = {
    "aal1": {"aal": "aal1"},
    "aal2": {"aal": "aal2"},
    "own-sign-in": {"own_provider": True},
    "any-sign-in": {"own_provider": False},
    "any-age": {"max_age": None},
}
_MAX_AGE = "max-age"


@command.command("create")
@click.argument("name")
@click.option("--slug", metavar="SLUG", help="Choose its short name.")
@click.option("--owner", metavar="SUBJECT", help="Make this user its owner: an email, phone or ID.")
@json_option
def create(name: str, slug: str | None, owner: str | None) -> None:
    """Create an organization called NAME.

    \b
    Example: latchkey organizations create "Acme Inc." --slug acme --owner alice@acme.example
    """
    with as_operator() as asked:
        options = {"name": name, "slug": slug, "owner": owner and found_user(asked.parts, owner).id}
        body = check(NewOrganization, {key: value for key, value in options.items() if value})
        _show_object(lifecycle.create(asked, body))


@command.command("list")
@click.option(
    "--q", metavar="TEXT", help="Only those of whose name TEXT begins a word, or whose short name it begins."
)
@click.option("--search", hidden=True, help="The former name of --q.")
@json_option
def list_command(q: str | None, search: str | None) -> None:
    """List the organizations, newest first.

    \b
    Example: latchkey organizations list --q acme
    """
    with as_operator() as asked:
        page_of = partial(lists.organizations, asked.db, q=q or search, page_size=_PAGE)
        for each in _pages(lambda offset: page_of(page_offset=offset).organizations):
            columns = [
                each["id"],
                each["slug"],
                printable(each["name"]),
                lists.number_of_members(each["members"]),
            ]
            demanded = states.of_requirement(each["requires"])
            columns += [f"requires {demanded}"] if demanded != "nothing" else []
            show(each, "  ".join(columns))


@command.command("show")
@_organization
@json_option
def show_command(name: str) -> None:
    """Show ORGANIZATION with its first hundred members, open invitations, domains and providers.

    With --json, with all members.

    \b
    Example: latchkey organizations show acme
    """
    with as_operator() as asked:
        organization = access.find(asked, name)
        id, object = organization.id, json.loads(organization.object)
        page_of = partial(lists.members, asked.db, id, q=None, with_addresses=True)
        if prints_json():
            joined = list(_pages(lambda offset: page_of(page_size=_PAGE, page_offset=offset).members))
            more = 0
        else:
            first = page_of(page_size=_FIRST, page_offset=0)
            joined = json.loads(first.members)
            more = first.total - len(joined)
        invited = json.loads(queries.list_invitations(asked.db, organization_id=id).invitations)
        lines = _lines_of(object)
        lines += [f"member: {_line_of_member(each)}" for each in joined]
        if more > 0:
            lines.append(f"{counted(more, 'more member')}: latchkey organizations members {object['slug']}")
        lines += [
            f"invited: {each['email']}  {each['role']}  until {each['expires_at'][:10]}" for each in invited
        ]
        domains = json.loads(queries.list_domains(asked.db, organization_id=id).domains)
        lines += [f"domain: {each['domain']}  {states.of_domain(each)}" for each in domains]
        providers = sign_in.listed(asked, organization)
        lines += [
            f"provider: {each['id']}  {printable(each['name'])}  {states.of_provider(each)}"
            for each in providers
        ]
        parts = {"members": joined, "invitations": invited, "domains": domains, "providers": providers}
        show(object | parts, *lines)


@command.command("members")
@_organization
@click.option(
    "--q", metavar="TEXT", help="Only those of whose name or email each word of TEXT begins a word."
)
@json_option
def members_command(name: str, q: str | None) -> None:
    """List the members of ORGANIZATION, in the order in which they joined.

    \b
    Example: latchkey organizations members acme --q smith
    """
    with as_operator() as asked:
        organization = access.find(asked, name)
        page_of = partial(lists.members, asked.db, organization.id, q=q, with_addresses=True)
        for each in _pages(lambda offset: page_of(page_size=_PAGE, page_offset=offset).members):
            show(each, _line_of_member(each))


@command.command("add")
@_organization
@_subject
@_role
@json_option
def add(name: str, subject: str, role: str) -> None:
    """Add the user SUBJECT to ORGANIZATION, or change the role of a member.

    \b
    Example: latchkey organizations add acme bob@acme.example --role admin
    """
    with as_operator() as asked:
        role = check(Role, {"role": role})["role"]
        user, organization = found_user(asked.parts, subject), access.find(asked, name)
        member = members.set_role(asked, organization, user.id, role, {})
        show(member, f"{subject} is {role} of {name}.")


@command.command("remove")
@_organization
@_subject
@json_option
def remove(name: str, subject: str) -> None:
    """Remove the user SUBJECT from ORGANIZATION, even its last owner. The user gets a notice.

    \b
    Example: latchkey organizations remove acme bob@acme.example
    """
    with as_operator() as asked:
        user = found_user(asked.parts, subject)
        members.remove(asked, access.find(asked, name), user.id)
        show({"user_id": user.id}, f"{subject} is no member of {name} any more.")


@command.command("invite")
@_organization
@click.argument("email")
@_role
@json_option
def invite(name: str, email: str, role: str) -> None:
    """Invite EMAIL, with or without a user, to join ORGANIZATION within seven days.

    \b
    Example: latchkey organizations invite acme bob@acme.example
    """
    with as_operator() as asked:
        role, address = check(Role, {"role": role})["role"], canonical_typed_email(email)
        organization = access.find(asked, name)
        invitation = json.loads(invitations.invite(asked, organization, address, role, {}))
        until = invitation["expires_at"][:10]
        show(invitation, f"{invitation['email']} is invited as {role} until {until}.")


@command.command("withdraw")
@_organization
@click.argument("email")
@json_option
def withdraw(name: str, email: str) -> None:
    """Withdraw the open invitation of EMAIL to ORGANIZATION.

    \b
    Example: latchkey organizations withdraw acme bob@acme.example
    """
    with as_operator() as asked:
        organization, address = access.find(asked, name), canonical_typed_email(email)
        rows = json.loads(queries.list_invitations(asked.db, organization_id=organization.id).invitations)
        invitation = next((each for each in rows if each["email"] == address), None)
        if invitation is None:
            raise Unusable(f"{address} has no open invitation to {name}.")
        invitations.withdraw(asked, organization, invitation["id"])
        show(invitation, f"{address} is not invited to {name} any more.")


@command.command("require")
@_organization
@click.argument("demand", type=click.Choice([*_DEMANDS, _MAX_AGE]))
@click.argument("seconds", type=click.IntRange(LEAST_AGE, MOST_AGE), required=False)
@json_option
def require(name: str, demand: str, seconds: int | None) -> None:
    """Require something of the sessions of members: aal2 is a second factor, aal1 none; own-sign-in is a
    provider of ORGANIZATION, any-sign-in lifts that; max-age is a sign-in of the last SECONDS, any-age lifts
    that.

    \b
    Example: latchkey organizations require acme aal2
             latchkey organizations require acme max-age 43200
    """
    if (demand == _MAX_AGE) != (seconds is not None):
        raise click.UsageError("Give SECONDS with max-age, and with nothing else.")
    required = _DEMANDS.get(demand, {"max_age": seconds})
    with as_operator() as asked:
        organization = access.find(asked, name)
        _show_object(lifecycle.change(asked, organization, {"requires": required}))


@command.command("prove", short_help="Prove a domain without DNS, on your own machine.")
@_organization
@click.argument("domain")
@json_option
def prove(name: str, domain: str) -> None:
    """Prove DOMAIN for ORGANIZATION without looking up its record, to try its own sign-in on your machine.

    Works only while AUTH_BASE_URL and AUTH_BIND are this machine. Elsewhere, the domain is not proved until
    its record is there, and a provider that has it signs in nobody.

    \b
    Example: latchkey organizations prove acme acme.example
    """
    with as_operator() as asked:
        object = json.loads(prove_by_command(asked, access.find(asked, name), domain))
        show(object, f"{object['domain']}: {states.of_domain(object)}")


@command.command("forget")
@_organization
@click.argument("domain")
@json_option
def forget(name: str, domain: str) -> None:
    """Take DOMAIN from ORGANIZATION: its providers sign in none of its addresses any more.

    \b
    Example: latchkey organizations forget acme acme.example
    """
    with as_operator() as asked:
        organization = access.find(asked, name)
        forget_domain(asked, organization, domain, {})
        show({"id": organization.id, "domain": domain.lower()}, f"{name} has {domain.lower()} no more.")


@command.command("end")
@_organization
@yes_option
@json_option
def end(name: str) -> None:
    """End ORGANIZATION for all its members. Their accounts stay.

    \b
    Example: latchkey organizations end acme
    """
    ask(f"End {name} for all its members?")
    with as_operator() as asked:
        organization = access.find(asked, name)
        lifecycle.end(asked, organization, {})
        show({"id": organization.id, "slug": organization.slug}, f"{name} has ended.")


@command.command("export")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@json_option
def export(file: Path) -> None:
    """Write all organizations to FILE, as JSON lines. Replaces an existing FILE.

    FILE has their members, domains and sign-in providers, without the client secrets.

    \b
    Example: latchkey organizations export organizations.jsonl
    """
    with as_operator() as asked:
        total = 0
        try:
            with files.replacing(file) as draft:
                for line in transfer.lines(asked):
                    draft.write(f"{line}\n".encode())
                    total += 1
        except OSError as error:
            raise click.ClickException(
                f"{file} cannot be written: {error.strerror}. Name another file."
            ) from None
        show({"organizations": total, "file": str(file)}, f"Organizations exported to {file}: {total:,}.")


@command.command("import")
@click.argument("file", type=INPUT_FILE)
@json_option
def import_(file: Path) -> None:
    """Create the organizations in FILE, from `export`, and add their members, domains and sign-in providers.

    Adds a member only if a user has the ID and has proved the address of FILE, so import the users first.
    Looks up the records of domains. Leaves providers off until an owner has tested them; for each, add a
    `client_secret` to FILE, or let the owner set it.
    Run it again to add the members, domains and providers that are missing, and to look up the domains that
    it could not prove: it changes nothing else. Sends no messages. Exits with 3 if something was refused.

    \b
    Example: latchkey organizations import organizations.jsonl
    """
    counts = dict.fromkeys(("created", "added", "named", "connected", "exists", "refused"), 0)
    with as_operator() as asked:
        try:
            for outcome in transfer.take(asked, file):
                counts[outcome.status] += 1
                _show_outcome(outcome)
        except transfer.UnreadableLine as error:
            raise Unreadable(f"{file}, line {error}. Fix the line.") from None
    show(
        counts,
        f"Organizations created: {counts['created']:,}. Members added: {counts['added']:,}."
        f" Domains named: {counts['named']:,}. Providers connected: {counts['connected']:,}."
        f" Already existed: {counts['exists']:,}. Refused: {counts['refused']:,}.",
    )
    if counts["refused"]:
        raise click.exceptions.Exit(3)


def _show_outcome(outcome: transfer.Imported) -> None:
    """Print an outcome. What existed already is printed only as JSON."""
    part = outcome.email or outcome.user_id or outcome.domain or outcome.provider
    who = f"{part} in {outcome.slug}" if part else outcome.slug
    lines = [] if outcome.status == "exists" else [f"{who}: {outcome.reason or outcome.status}"]
    show(outcome._asdict(), *map(printable, lines))


def _show_object(object: str) -> None:
    organization = json.loads(object)
    show(organization, *_lines_of(organization))


def _lines_of(organization: Mapping[str, Any]) -> list[str]:
    lines = {"name": organization["name"], "short name": organization["slug"], "id": organization["id"]}
    lines["requires"] = states.of_requirement(organization["requires"])
    return [f"{name}: {printable(value)}" for name, value in lines.items()]


def _line_of_member(member: Mapping[str, Any]) -> str:
    columns = [member["user_id"], member["email"] or "no email", member["role"]]
    columns += [] if member["has_second_factor"] else ["no second factor"]
    columns += [printable(member["name"])] if member["name"] else []
    return "  ".join(columns)


def _pages(page_of: Callable[[int], str]) -> Iterator[dict[str, Any]]:
    """Yield the items of a list. `page_of` gets the offset of a page."""
    offset = 0
    while page := json.loads(page_of(offset)):
        yield from page
        offset += len(page)
