import assert from "node:assert/strict";
import { test } from "node:test";
import { becomeBrowser } from "./authenticator.mjs";
import { admin, failed, message, newClient, ok, password, signedIn, url } from "./support.mjs";

becomeBrowser();

const claimsOf = (token) => JSON.parse(Buffer.from(token.split(".")[1], "base64url"));

test("a user registers a passkey, signs in with it, renames and deletes it", async () => {
  const { client, user } = await signedIn();
  const registered = ok(await client.auth.registerPasskey());
  assert.deepEqual(Object.keys(registered).sort(), ["created_at", "friendly_name", "id", "status"]);
  assert.equal(registered.status, "verified");

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

/** The options of a passkey that the browser may make by itself, which `registerPasskey` does not ask for. */
async function unaskedOptions(client) {
  const { session } = ok(await client.auth.getSession());
  const headers = { Authorization: `Bearer ${session.access_token}`, "Content-Type": "application/json" };
  const body = JSON.stringify({ mediation: "conditional" });
  const response = await fetch(`${url}/passkeys/registration/options`, { method: "POST", headers, body });
  assert.equal(response.status, 200);
  return response.json();
}

test("a page of one's own has the browser make a passkey, which is no factor until its first use", async () => {
  const { client, email, user } = await signedIn();
  const { challenge_id: challengeId, options, unasked } = await unaskedOptions(client);
  assert.equal(unasked, true);
  const made = (await navigator.credentials.create({ publicKey: options, mediation: "conditional" })).toJSON();
  const registered = ok(await client.auth.passkey.verifyRegistration({ challengeId, credential: made }));
  assert.equal(registered.status, "unverified");
  assert.equal((await message(email, ({ kind }) => kind === "passkey_added")).kind, "passkey_added");
  assert.deepEqual(ok(await client.auth.passkey.list()).map(({ status }) => status), ["unverified"]);
  assert.deepEqual(ok(await client.auth.mfa.listFactors()).all, []);
  // The session is what it was, and the password is still enough for a change.
  assert.equal(ok(await client.auth.mfa.getAuthenticatorAssuranceLevel()).currentLevel, "aal1");
  assert.equal(ok(await client.auth.refreshSession()).session.user.id, user.id);

  const back = newClient();
  const { session } = ok(await back.auth.signInWithPasskey());
  assert.equal(session.user.id, user.id);
  assert.equal(claimsOf(session.access_token).aal, "aal2");
  assert.deepEqual(ok(await back.auth.passkey.list()).map(({ status }) => status), ["verified"]);
  const other = newClient();
  ok(await other.auth.signInWithPassword({ email, password }));
  failed(await other.auth.registerPasskey(), 403, "insufficient_aal");
});

test("a passkey that nobody was present for is refused as one that the user makes", async () => {
  const { client } = await signedIn();
  const { challenge_id: challengeId, options } = ok(await client.auth.passkey.startRegistration());
  const made = (await navigator.credentials.create({ publicKey: options, mediation: "conditional" })).toJSON();
  failed(await client.auth.passkey.verifyRegistration({ challengeId, credential: made }), 400, "webauthn_verification_failed");
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
