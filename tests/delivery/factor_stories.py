"""The stories of second factors, recovery codes and passkeys."""

from collections.abc import Callable
from typing import Any

from tests.support import passkeys
from tests.support.authenticator import Authenticator
from tests.support.factors import challenge, enrol, set_up
from tests.support.stories import World, story


@story("post /factors", "", "")
def enrolling_a_factor(world: World) -> Callable[[], Any]:
    session = world.session()
    return lambda: enrol(session)


@story("post /factors/{factor_id}/challenge", "", "")
def challenging_a_factor(world: World) -> Callable[[], Any]:
    session = world.session()
    app = enrol(session)
    return lambda: challenge(session, app)


@story("post /factors/{factor_id}/verify", "user.updated", "factor_added")
def verifying_a_factor_for_the_first_time(world: World) -> Callable[[], Any]:
    session = world.session()
    app = enrol(session)
    body = {"challenge_id": challenge(session, app), "code": app.code()}
    return lambda: session.post(f"/factors/{app.id}/verify", json=body)


@story("post /factors/{factor_id}/verify", "", "factor_verified")
def verifying_a_factor_again(world: World) -> Callable[[], Any]:
    app, session = set_up(world.session())
    body = {"challenge_id": challenge(session, app), "code": app.code()}
    return lambda: session.post(f"/factors/{app.id}/verify", json=body)


@story("delete /factors/{factor_id}", "user.updated", "factor_removed")
def removing_a_factor(world: World) -> Callable[[], Any]:
    app, session = set_up(world.session())
    return lambda: session.delete(f"/factors/{app.id}")


@story("delete /admin/users/{user_id}/factors/{factor_id}", "user.updated", "factor_removed")
def administrator_removing_a_factor(world: World) -> Callable[[], Any]:
    app, _ = set_up(world.session())
    return lambda: world.administer("DELETE", f"/admin/users/{world.alice.id}/factors/{app.id}")


@story("post /recovery_codes", "", "recovery_codes_created")
def making_recovery_codes(world: World) -> Callable[[], Any]:
    _, session = set_up(world.session())
    return lambda: session.post("/recovery_codes", json={})


@story("post /recovery_codes/verify", "", "recovery_code_used")
def using_a_recovery_code(world: World) -> Callable[[], Any]:
    _, session = set_up(world.session())
    code = session.post("/recovery_codes", json={}).json["codes"][0]
    return lambda: session.post("/recovery_codes/verify", json={"code": code})


@story("post /passkeys/registration/options", "", "")
def beginning_to_register_a_passkey(world: World) -> Callable[[], Any]:
    session = world.session()
    return lambda: session.post("/passkeys/registration/options", json={})


@story("post /passkeys/registration/verify", "user.updated", "passkey_added")
def registering_a_passkey(world: World) -> Callable[[], Any]:
    session = world.session()
    return lambda: passkeys.register_response(session, Authenticator())


@story("post /passkeys/authentication/options", "", "")
def beginning_to_sign_in_by_a_passkey(world: World) -> Callable[[], Any]:
    return lambda: world.client.post("/passkeys/authentication/options", json={})


@story("post /passkeys/authentication/verify", "auth.login", "signed_in")
def signing_in_by_a_passkey(world: World) -> Callable[[], Any]:
    authenticator, _ = passkeys.register(world.session())
    return lambda: passkeys.sign_in_response(world.client, authenticator)


@story("patch /passkeys/{passkey_id}", "user.updated", "passkey_renamed")
def renaming_a_passkey(world: World) -> Callable[[], Any]:
    authenticator, passkey = passkeys.register(world.session())
    session = passkeys.sign_in(world.client, authenticator)
    body = {"friendly_name": "Laptop"}
    return lambda: session.client.patch(
        f"/passkeys/{passkey['id']}", json=body, headers=session.authorization
    )


@story("delete /passkeys/{passkey_id}", "user.updated", "passkey_removed")
def removing_a_passkey(world: World) -> Callable[[], Any]:
    authenticator, passkey = passkeys.register(world.session())
    session = passkeys.sign_in(world.client, authenticator)
    return lambda: session.delete(f"/passkeys/{passkey['id']}")


@story("delete /admin/users/{user_id}/passkeys/{passkey_id}", "user.updated", "passkey_removed")
def administrator_removing_a_passkey(world: World) -> Callable[[], Any]:
    _, passkey = passkeys.register(world.session())
    return lambda: world.administer("DELETE", f"/admin/users/{world.alice.id}/passkeys/{passkey['id']}")
