import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import test from "node:test";
import { admin, failed, newClient, ok, signedIn } from "./support.mjs";

const callback = "https://example.com/callback";
const { oauth } = admin;

/** A new client, which is deleted after the test. */
async function made(t, params = {}) {
  const client = ok(await oauth.createClient({ client_name: "Test", redirect_uris: [callback], ...params }));
  t.after(() => oauth.deleteClient(client.client_id));
  return client;
}

test("a client is created, read, updated and deleted", async () => {
  const client = ok(await oauth.createClient({ client_name: "Test", redirect_uris: [callback] }));
  const { client_id } = client;
  assert.equal(client.client_name, "Test");
  assert.match(client.client_secret, /^[\w-]{43}$/);
  const read = ok(await oauth.getClient(client_id));
  assert.deepEqual([read.client_id, read.client_secret], [client_id, undefined]);
  const changes = { client_name: "Another", logo_uri: "https://example.com/new-logo.png" };
  const updated = ok(await oauth.updateClient(client_id, changes));
  assert.deepEqual([updated.client_id, updated.client_name, updated.logo_uri], [client_id, ...Object.values(changes)]);
  ok(await oauth.deleteClient(client_id));
  const gone = await oauth.getClient(client_id);
  failed(gone, 404, "oauth_client_not_found", "OAuth client not found");
  assert.equal(gone.data, null);
});

test("listClients has the newest clients and pages", async (t) => {
  const ids = [];
  for (let n = 0; n < 3; n++) ids.push((await made(t)).client_id);
  const { clients } = ok(await oauth.listClients());
  assert.deepEqual(clients.slice(0, 3).map((client) => client.client_id), ids.toReversed());
  const page = ok(await oauth.listClients({ page: 1, perPage: 2 }));
  assert.deepEqual([page.clients.length, page.nextPage, page.aud], [2, 2, "authenticated"]);
  assert.equal(page.total, clients.length);
});

test("regenerateClientSecret gives another secret", async (t) => {
  const { client_id, client_secret } = await made(t);
  const again = ok(await oauth.regenerateClientSecret(client_id));
  assert.match(again.client_secret, /^[\w-]{43}$/);
  assert.notEqual(again.client_secret, client_secret);
});

test("createClient refuses a client without redirect URIs", async () => {
  const refused = await oauth.createClient({ client_name: "Invalid", redirect_uris: [] });
  assert.match(failed(refused, 400, "validation_failed").message, /redirect_uris|required|invalid/i);
  assert.equal(refused.data, null);
});

test("an unknown client is not found", async () => {
  for (const id of ["00000000-0000-0000-0000-000000000000", randomUUID()]) {
    const unknown = await oauth.getClient(id);
    failed(unknown, 404, "oauth_client_not_found");
    assert.equal(unknown.data, null);
    failed(await oauth.updateClient(id, { client_name: "Test" }), 404, "oauth_client_not_found");
    failed(await oauth.deleteClient(id), 404, "oauth_client_not_found");
    failed(await oauth.regenerateClientSecret(id), 404, "oauth_client_not_found");
  }
});

test("updateClient keeps what it does not name", async (t) => {
  const { client_id } = await made(t);
  const logo_uri = "https://example.com/new-logo.png";
  const updated = ok(await oauth.updateClient(client_id, { logo_uri }));
  assert.deepEqual([updated.logo_uri, updated.client_name], [logo_uri, "Test"]);
});

test("a client needs no more than a name and a redirect URI", async (t) => {
  const client = await made(t);
  assert.ok(client.client_id);
  assert.deepEqual(client.grant_types, ["authorization_code", "refresh_token"]);
  assert.deepEqual(client.response_types, ["code"]);
});

test("several redirect URIs keep their order", async (t) => {
  const redirect_uris = [callback, "http://localhost:3000/callback", "https://app.example.com/auth"];
  assert.deepEqual((await made(t, { redirect_uris })).redirect_uris, redirect_uris);
});

test("a public client has no secret", async (t) => {
  const client = await made(t, { token_endpoint_auth_method: "none" });
  assert.deepEqual([client.client_type, client.client_secret], ["public", undefined]);
  failed(await oauth.regenerateClientSecret(client.client_id), 400, "validation_failed");
});

test("a user's token is not enough", async () => {
  const { client } = await signedIn();
  const { session } = ok(await client.auth.getSession());
  const { oauth: ofUser } = newClient({}, session.access_token).auth.admin;
  failed(await ofUser.listClients(), 403, "insufficient_permissions");
});
