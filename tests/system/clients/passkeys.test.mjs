import assert from "node:assert/strict";
import { test } from "node:test";
import { becomeBrowser } from "./authenticator.mjs";
import { admin, failed, newClient, ok, password, signedIn } from "./support.mjs";

becomeBrowser();

const claimsOf = (token) => JSON.parse(Buffer.from(token.split(".")[1], "base64url"));

test("a user registers a passkey, signs in with it, renames and deletes it", async () => {
  const { client, user } = await signedIn();
  const registered = ok(await client.auth.registerPasskey());
  assert.deepEqual(Object.keys(registered).sort(), ["created_at", "friendly_name", "id"]);

  const back = newClient();
  const { session } = ok(await back.auth.signInWithPasskey());
  assert.equal(session.user.id, user.id);
  assert.equal(claimsOf(session.access_token).aal, "aal2");
  assert.equal(ok(await back.auth.mfa.getAuthenticatorAssuranceLevel()).currentLevel, "aal2");

  const [passkey] = ok(await back.auth.passkey.list());
  assert.equal(passkey.id, registered.id);
  assert.ok(passkey.last_used_at);
  const renamed = ok(await back.auth.passkey.update({ passkeyId: passkey.id, friendlyName: "Laptop" }));
  assert.equal(renamed.friendly_name, "Laptop");
  assert.equal(ok(await back.auth.passkey.delete({ passkeyId: passkey.id })), null);
  assert.deepEqual(ok(await back.auth.passkey.list()), []);
  failed(await newClient().auth.signInWithPasskey(), 400, "webauthn_verification_failed");
});

test("the session that registered the first passkey manages passkeys for a while", async () => {
  const { client, email } = await signedIn();
  const first = ok(await client.auth.registerPasskey());
  const second = ok(await client.auth.registerPasskey());
  const other = newClient();
  ok(await other.auth.signInWithPassword({ email, password }));
  failed(await other.auth.registerPasskey(), 403, "insufficient_aal");
  failed(await other.auth.passkey.delete({ passkeyId: second.id }), 403, "insufficient_aal");

  ok(await client.auth.passkey.update({ passkeyId: first.id, friendlyName: "Laptop" }));
  assert.equal(ok(await client.auth.passkey.delete({ passkeyId: second.id })), null);
  assert.equal(ok(await client.auth.passkey.delete({ passkeyId: first.id })), null);
  assert.deepEqual(ok(await client.auth.passkey.list()), []);
});

test("an administrator lists and deletes the passkeys of a user", async () => {
  const { client, user } = await signedIn();
  const { id } = ok(await client.auth.registerPasskey());
  const [passkey] = ok(await admin.passkey.listPasskeys({ userId: user.id }));
  assert.equal(passkey.id, id);
  ok(await admin.passkey.deletePasskey({ userId: user.id, passkeyId: id }));
  assert.deepEqual(ok(await admin.passkey.listPasskeys({ userId: user.id })), []);
});

test("a user registers a security key, and raises another session with it", async () => {
  const { client, email } = await signedIn();
  const registered = ok(await client.auth.mfa.webauthn.register({ friendlyName: "Key" }));
  assert.equal(claimsOf(registered.access_token).aal, "aal2");

  const other = newClient();
  ok(await other.auth.signInWithPassword({ email, password }));
  const [factor] = ok(await other.auth.mfa.listFactors()).webauthn;
  assert.deepEqual([factor.friendly_name, factor.status], ["Key", "verified"]);
  const raised = ok(await other.auth.mfa.webauthn.authenticate({ factorId: factor.id }));
  assert.equal(claimsOf(raised.access_token).aal, "aal2");
  assert.equal(ok(await other.auth.mfa.getAuthenticatorAssuranceLevel()).currentLevel, "aal2");
});
