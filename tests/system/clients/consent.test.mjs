import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import test from "node:test";
import { admin, failed, ok, signedIn, url } from "./support.mjs";

const redirectUri = "https://grafana.example.com/callback";
const challenge = createHash("sha256").update("a-code-verifier-of-these-tests-0123456789-abcdef").digest("base64url");

/** A browser with its cookies, which follows no redirects. */
function browser() {
  let cookie = "";
  return async (target) => {
    const response = await fetch(target, { redirect: "manual", headers: { Cookie: cookie } });
    for (const each of response.headers.getSetCookie()) cookie = each.split(";")[0];
    return new URL(response.headers.get("Location") ?? "about:blank");
  };
}

/** Begin a request of a new application; return its id, the application, and the browser. */
async function begin() {
  const client = ok(await admin.oauth.createClient({ client_name: "Grafana", redirect_uris: [redirectUri] }));
  const query = {
    client_id: client.client_id, redirect_uri: redirectUri, response_type: "code", scope: "openid email", state: "s",
    code_challenge: challenge, code_challenge_method: "S256",
  };
  const visit = browser();
  const id = (await visit(`${url}/auth/v1/oauth/authorize?${new URLSearchParams(query)}`)).searchParams.get("authorization_id");
  return { id, client, visit, query };
}

test("getAuthorizationDetails and approveAuthorization lead to a code", async () => {
  const [{ client: { auth }, email, user }, { id, client, visit, query }] = [await signedIn(), await begin()];
  const details = ok(await auth.oauth.getAuthorizationDetails(id));
  assert.deepEqual(details, {
    authorization_id: id, redirect_uri: redirectUri, client: { id: client.client_id, name: "Grafana" },
    user: { id: user.id, email }, scope: "openid email", resource: null,
  });
  const { redirect_url } = ok(await auth.oauth.approveAuthorization(id, { skipBrowserRedirect: true }));
  const back = await visit(redirect_url);
  assert.equal(back.origin + back.pathname, redirectUri);
  assert.match(back.searchParams.get("code"), /^[\w-]{43}$/);
  assert.equal(back.searchParams.get("state"), "s");
  failed(await auth.oauth.approveAuthorization(id, { skipBrowserRedirect: true }), 400, "validation_failed");

  // What the user has allowed is approved at once.
  const again = (await visit(`${url}/oauth/authorize?${new URLSearchParams(query)}`)).searchParams.get("authorization_id");
  const known = ok(await auth.oauth.getAuthorizationDetails(again));
  assert.deepEqual(Object.keys(known), ["redirect_url"]);
  assert.ok((await visit(known.redirect_url)).searchParams.get("code"));
});

test("denyAuthorization leads back with access_denied", async () => {
  const [{ client: { auth } }, { id }] = [await signedIn(), await begin()];
  ok(await auth.oauth.getAuthorizationDetails(id));
  const { redirect_url } = ok(await auth.oauth.denyAuthorization(id, { skipBrowserRedirect: true }));
  assert.equal(new URL(redirect_url).searchParams.get("error"), "access_denied");
  failed(await auth.oauth.getAuthorizationDetails(id), 404, "oauth_authorization_not_found", "authorization not found");
});

test("a request is the first user's who asks", async () => {
  const [first, second, { id }] = [await signedIn(), await signedIn(), await begin()];
  ok(await first.client.auth.oauth.getAuthorizationDetails(id));
  failed(await second.client.auth.oauth.getAuthorizationDetails(id), 404, "oauth_authorization_not_found");
  failed(await second.client.auth.oauth.approveAuthorization(id, { skipBrowserRedirect: true }), 404, "oauth_authorization_not_found");
});
