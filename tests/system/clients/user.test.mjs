import assert from "node:assert/strict";
import test from "node:test";
import { admin, failed, message, newClient, newEmail, newPhone, ok, password, signedIn, url } from "./support.mjs";

test("getUser returns the user", async () => {
  const { client, email } = await signedIn();
  const { user } = ok(await client.auth.getUser());
  assert.deepEqual([user.email, user.phone, user.aud, user.role], [email, "", "authenticated", "authenticated"]);
  assert.ok(!Object.values(user).includes(null));
  const { identities } = ok(await client.auth.getUserIdentities());
  assert.deepEqual([identities.length, identities[0].provider], [1, "email"]);
});

test("getUser refuses a token that does not verify", async () => {
  const { error } = await newClient().auth.getUser("eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl");
  assert.deepEqual([error.status, error.code], [401, "bad_jwt"]);
  assert.match(error.message, /^invalid JWT: unable to parse or verify signature/);
});

test("updateUser changes metadata and the password", async () => {
  const { client, email } = await signedIn();
  const { user } = ok(await client.auth.updateUser({ data: { name: "Alice" }, email: "" }));
  assert.deepEqual([user.user_metadata.name, user.email], ["Alice", email]);
  const same = "New password should be different from the old password.";
  failed(await client.auth.updateUser({ password }), 422, "same_password", same);
  ok(await client.auth.updateUser({ password: "Another-Horse-1" }));
  ok(await newClient().auth.signInWithPassword({ email, password: "Another-Horse-1" }));
});

test("updateUser changes the email once it is confirmed", async () => {
  const { client } = await signedIn();
  const email = newEmail();
  const { user } = ok(await client.auth.updateUser({ email }, { emailRedirectTo: `${url}/welcome` }));
  assert.equal(user.new_email, email);
  const { code } = await message(email);
  const verified = ok(await client.auth.verifyOtp({ type: "email_change", email, token: code }));
  assert.equal(verified.user.email, email);
});

test("resend sends the code of a change again", async () => {
  const { client } = await signedIn();
  const [email, phone] = [newEmail(), newPhone()];
  for (const [type, change, to] of [["email_change", { email }, email], ["phone_change", { phone }, `+${phone}`]]) {
    ok(await client.auth.updateUser(change));
    const first = await message(to);
    ok(await client.auth.resend({ type, ...change }));
    const { code } = await message(to, (sent) => sent.id !== first.id);
    ok(await client.auth.verifyOtp({ type, ...change, token: code }));
  }
});

test("updateUser changes the phone once it is confirmed", async () => {
  const { client } = await signedIn();
  const phone = newPhone();
  assert.equal(ok(await client.auth.updateUser({ phone })).user.new_phone, phone);
  const { code } = await message(`+${phone}`);
  const verified = ok(await client.auth.verifyOtp({ type: "phone_change", phone, token: code }));
  assert.equal(verified.user.phone, phone);
});

test("applications hear of each change of the session", async () => {
  const { client } = await signedIn();
  const events = [];
  client.auth.onAuthStateChange((event) => events.push(event));
  ok(await client.auth.refreshSession());
  ok(await client.auth.updateUser({ data: { name: "Alice" } }));
  assert.equal((await client.auth.signOut()).error, null);
  assert.deepEqual(events.filter((event) => event !== "INITIAL_SESSION"), ["TOKEN_REFRESHED", "USER_UPDATED", "SIGNED_OUT"]);
});

test("reauthenticate sends a code that updateUser takes", async () => {
  const { client, email } = await signedIn();
  ok(await client.auth.reauthenticate());
  const { code } = await message(email, ({ kind }) => kind === "reauthentication");
  ok(await client.auth.updateUser({ password: "Another-Horse-1", nonce: code }));
});

test("refreshSession rotates the token, and ten tabs at once stay signed in", async () => {
  const { client } = await signedIn();
  const { session } = ok(await client.auth.getSession());
  const tabs = Array.from({ length: 10 }, () => newClient());
  const refreshed = await Promise.all(tabs.map((tab) => tab.auth.refreshSession(session)));
  const tokens = new Set(refreshed.map((response) => ok(response).session.refresh_token));
  assert.equal(tokens.size, 1);
  assert.ok(!tokens.has(session.refresh_token));
  ok(await tabs[0].auth.getUser());
});

test("refreshSession refuses an unknown token", async () => {
  const response = await newClient().auth.refreshSession({ refresh_token: "unknown" });
  failed(response, 400, "refresh_token_not_found", "Invalid Refresh Token: Refresh Token Not Found");
});

test("signOut ends this session, all others, or all", async () => {
  const { client, email } = await signedIn();
  const others = [newClient(), newClient()];
  for (const other of others) ok(await other.auth.signInWithPassword({ email, password }));
  const [first, second] = others;
  assert.equal((await first.auth.signOut({ scope: "local" })).error, null);
  ok(await second.auth.getUser());
  assert.equal((await client.auth.signOut({ scope: "others" })).error, null);
  assert.equal((await second.auth.getUser()).error.name, "AuthSessionMissingError");
  const { session } = ok(await client.auth.getSession());
  assert.equal((await client.auth.signOut()).error, null);
  const { error } = await newClient().auth.getUser(session.access_token);
  assert.equal(error.name, "AuthSessionMissingError");
});

test("getClaims verifies the token with the published keys", async () => {
  const { client, user } = await signedIn();
  const { claims, header } = ok(await client.auth.getClaims());
  assert.deepEqual([claims.sub, claims.role, claims.aal], [user.id, "authenticated", "aal1"]);
  assert.equal(header.alg, process.env.LATCHKEY_ALGORITHM);
});

test("getClaims refuses a token that is not signed by these keys", async () => {
  const { client } = await signedIn();
  const { session } = ok(await client.auth.getSession());
  const [header, payload, signature] = session.access_token.split(".");
  const changed = signature.slice(0, 10) + (signature[10] === "A" ? "B" : "A") + signature.slice(11);
  const { data, error } = await newClient().auth.getClaims([header, payload, changed].join("."));
  assert.equal(data, null);
  assert.ok(["AuthInvalidJwtError", "AuthApiError"].includes(error.name), error);
});

test("getAuthenticatorAssuranceLevel and listFactors read the session", async () => {
  const { client } = await signedIn();
  assert.equal(ok(await client.auth.mfa.getAuthenticatorAssuranceLevel()).currentLevel, "aal1");
  assert.deepEqual(ok(await client.auth.mfa.listFactors()).totp, []);
});

test("listGrants and revokeGrant show and remove what the user allows an application", async () => {
  const { client } = await signedIn();
  const clientId = await allowed(client, "Grafana");
  const [grant] = ok(await client.auth.oauth.listGrants());
  assert.deepEqual(grant.client, { id: clientId, name: "Grafana" });
  assert.deepEqual([grant.scopes, Number.isNaN(Date.parse(grant.granted_at))], [["openid", "email"], false]);
  ok(await client.auth.oauth.revokeGrant({ clientId }));
  assert.deepEqual(ok(await client.auth.oauth.listGrants()), []);
  const message = "No active grant found for this client";
  failed(await client.auth.oauth.revokeGrant({ clientId }), 404, "oauth_consent_not_found", message);
});

/** The id of a new application that the user of a client allows to sign in. */
async function allowed(client, client_name) {
  const redirect_uri = "https://grafana.example.com/callback";
  const made = ok(await admin.oauth.createClient({ client_name, redirect_uris: [redirect_uri] }));
  const asked = { client_id: made.client_id, redirect_uri, response_type: "code", scope: "openid email" };
  const challenge = { code_challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", code_challenge_method: "S256" };
  const query = new URLSearchParams({ ...asked, ...challenge });
  const begun = await fetch(`${url}/oauth/authorize?${query}`, { redirect: "manual" });
  const id = new URL(begun.headers.get("Location")).searchParams.get("authorization_id");
  assert.equal(ok(await client.auth.oauth.getAuthorizationDetails(id)).client.name, client_name);
  ok(await client.auth.oauth.approveAuthorization(id, { skipBrowserRedirect: true }));
  return made.client_id;
}
