import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { failed, idTokens, newClient, ok, open, signedIn, tokensOf, url } from "./support.mjs";

const options = { redirectTo: `${url}/welcome`, skipBrowserRedirect: true };

/** Link a new person at the provider; return the application's page. */
async function link(client) {
  const { url: target } = ok(await client.auth.linkIdentity({ provider: "google", options }));
  return open(target);
}

test("signInWithOAuth signs in by the callback", async () => {
  const client = newClient();
  const { url: target } = ok(await client.auth.signInWithOAuth({ provider: "google", options }));
  const page = await open(target);
  assert.equal(page.pathname, "/welcome");
  const { user } = ok(await client.auth.setSession(tokensOf(page)));
  assert.deepEqual([user.app_metadata.provider, user.identities[0].provider], ["google", "google"]);
  assert.match(user.email, /@gmail\.example$/);
});

test("signInWithOAuth with PKCE redirects with a code", async () => {
  const client = newClient({ flowType: "pkce" });
  const wish = { provider: "google", options: { ...options, scopes: "email", queryParams: { prompt: "consent" } } };
  const page = await open(ok(await client.auth.signInWithOAuth(wish)).url);
  assert.equal(page.hash, "");
  const { session } = ok(await client.auth.exchangeCodeForSession(page.searchParams.get("code")));
  assert.equal(session.user.app_metadata.provider, "google");
});

test("signInWithOAuth with PKCE reads an error on a server, and in a browser", async () => {
  const { url: target } = ok(await newClient({ flowType: "pkce" }).auth.signInWithOAuth({ provider: "google", options }));
  const page = await open(target, { losesCookies: true });
  assert.equal(page.pathname, "/welcome");
  assert.equal(page.searchParams.get("code"), null);
  for (const told of [Object.fromEntries(page.searchParams), tokensOf(page)]) {
    assert.deepEqual([told.error, told.error_code], ["invalid_request", "bad_oauth_state"]);
  }
  globalThis.document = { visibilityState: "hidden" };
  globalThis.window = { location: { href: page.href }, addEventListener: () => {} };
  try {
    const { error } = await newClient({ flowType: "pkce", detectSessionInUrl: true }).auth.initialize();
    assert.deepEqual(error.details, { error: "invalid_request", code: "bad_oauth_state" });
  } finally {
    delete globalThis.window;
    delete globalThis.document;
  }
});

test("signInWithOAuth passes the scopes on", async () => {
  const wish = { provider: "google", options: { ...options, scopes: "email" } };
  const response = await fetch(ok(await newClient().auth.signInWithOAuth(wish)).url, { redirect: "manual" });
  assert.equal(response.status, 302);
  assert.equal(new URL(response.headers.get("Location")).searchParams.get("scope"), "email");
});

test("signInWithIdToken signs in once", async () => {
  const token = idTokens.pop();
  const { session } = ok(await newClient().auth.signInWithIdToken({ provider: "google", token }));
  assert.equal(session.user.app_metadata.provider, "google");
  const again = await newClient().auth.signInWithIdToken({ provider: "google", token });
  failed(again, 400, "bad_oauth_callback", "Bad ID token");
  const other = await newClient().auth.signInWithIdToken({ provider: "apple", token });
  failed(other, 400, "provider_disabled");
  assert.match(other.error.message, /^Provider \(issuer "http:.+"\) is not enabled$/);
  failed(await newClient().auth.signInWithIdToken({ provider: "google", token: "none" }), 400, "bad_oauth_callback", "Bad ID token");
});

test("linkIdentity adds an identity, and unlinkIdentity removes it", async () => {
  const { client, user } = await signedIn();
  assert.equal((await link(client)).searchParams.get("error"), null);
  const linked = ok(await client.auth.getUserIdentities()).identities;
  assert.deepEqual(linked.map(({ provider }) => provider).sort(), ["email", "google"]);
  const google = linked.find(({ provider }) => provider === "google");
  assert.equal(google.user_id, user.id);
  ok(await client.auth.unlinkIdentity(google));
  const { identities } = ok(await client.auth.getUserIdentities());
  assert.equal(identities.length, 1);
  failed(await client.auth.unlinkIdentity(identities[0]), 422, "single_identity_not_deletable");
});

test("linkIdentity with PKCE is told on a server, too", async () => {
  const { client } = await signedIn({ flowType: "pkce" });
  const linked = (await link(client)).searchParams;
  assert.deepEqual([linked.get("type"), linked.get("code")], ["identity_linked", null]);
  assert.equal((await link(client)).searchParams.get("error_code"), "identity_already_exists");
});

test("linkIdentity with an id_token keeps the session", async () => {
  const { client, user } = await signedIn();
  const before = ok(await client.auth.getClaims()).claims.session_id;
  const { session } = ok(await client.auth.linkIdentity({ provider: "google", token: idTokens.pop() }));
  assert.deepEqual([session.user.id, session.user.identities.length], [user.id, 2]);
  assert.equal(ok(await client.auth.getClaims()).claims.session_id, before);
  ok(await client.auth.refreshSession());
});

test("linkIdentity keeps a second identity of the provider away", async () => {
  const { client } = await signedIn();
  await link(client);
  assert.equal(tokensOf(await link(client)).error_code, "identity_already_exists");
});

test("each provider that the types of the client name is in the settings", async () => {
  const types = readFileSync(new URL("node_modules/@supabase/auth-js/dist/module/lib/types.d.ts", import.meta.url), "utf8");
  const union = types.split("export type Provider =")[1].split(";")[0];
  const names = [...union.matchAll(/'(\w+)'/g)].map(([, name]) => name);
  assert.ok(names.length > 20, String(names.length));
  const { external } = await (await fetch(`${url}/auth/v1/settings`)).json();
  assert.deepEqual(names.filter((name) => !(name in external)), []);
});
