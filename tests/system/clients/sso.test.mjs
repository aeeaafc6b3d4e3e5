// A customer's provider: oidc-provider of npm, which the service knows by the official client.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import test, { after, before } from "node:test";
import Provider from "oidc-provider";
import { admin, failed, newClient, ok, open, url } from "./support.mjs";

const providers = admin.customProviders;
const domain = "acme.example";
const clientSecret = "a-secret-of-the-customer-s-provider";
let issuer;
let server;
let provider;
// Who is signed in at the provider.
let person;

before(async () => {
  server = createServer((request, response) => handle(request, response));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  issuer = `http://127.0.0.1:${server.address().port}`;
});
after(() => server.close());

/** Make the provider with a redirect URI, as its administrator does. */
function make(redirectUri) {
  provider = new Provider(issuer, {
    clients: [
      {
        client_id: "latchkey",
        client_secret: clientSecret,
        redirect_uris: [redirectUri],
        grant_types: ["authorization_code"],
        response_types: ["code"],
      },
    ],
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
    conformIdTokenClaims: false,
    findAccount: (_context, sub) => ({ accountId: sub, claims: () => ({ sub, ...person }) }),
    pkce: { required: () => true },
    cookies: { keys: ["a-key-of-these-tests"] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
  });
}

async function handle(request, response) {
  if (!provider) return response.writeHead(503).end();
  if (!request.url.startsWith("/interaction/")) return provider.callback()(request, response);
  const { params } = await provider.interactionDetails(request, response);
  const grant = new provider.Grant({ accountId: person.sub, clientId: params.client_id });
  grant.addOIDCScope(params.scope);
  const result = { login: { accountId: person.sub }, consent: { grantId: await grant.save() } };
  return provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
}

async function signIn(options) {
  const browser = newClient({ flowType: "pkce" });
  const { url: begun } = ok(await browser.auth.signInWithSSO({ ...options }));
  assert.ok(begun.startsWith(`${url}/authorize?`));
  const target = await open(begun);
  return { browser, target };
}

test("a provider is added, used, changed and deleted", async () => {
  // The provider must be there when it is added, and its redirect URI is known then.
  make("https://unused.example/");
  const created = ok(
    await providers.createProvider({
      provider_type: "oidc",
      identifier: "custom:acme",
      name: "Acme",
      client_id: "latchkey",
      client_secret: clientSecret,
      issuer,
      domains: [domain],
    }),
  );
  assert.deepEqual([created.identifier, created.issuer, created.enabled], ["custom:acme", issuer, true]);
  assert.equal("client_secret" in created, false);
  assert.deepEqual(ok(await providers.getProvider("custom:acme")), created);
  assert.deepEqual(ok(await providers.listProviders()).providers, [created]);
  assert.deepEqual(ok(await providers.listProviders({ type: "oauth2" })).providers, []);
  make(created.redirect_uri);

  person = { sub: "1", email: `alice@${domain}`, email_verified: true, name: "Alice" };
  for (const options of [{ domain }, { providerId: created.id }]) {
    const { browser, target } = await signIn(options);
    const { user } = ok(await browser.auth.exchangeCodeForSession(target.searchParams.get("code")));
    assert.deepEqual([user.email, user.app_metadata.provider], [person.email, `sso:${created.id}`]);
  }
  const { url: begun } = ok(
    await newClient().auth.signInWithOAuth({ provider: "custom:acme", options: { skipBrowserRedirect: true } }),
  );
  const fragment = new URLSearchParams((await open(begun)).hash.slice(1));
  const session = newClient();
  const tokens = { access_token: fragment.get("access_token"), refresh_token: fragment.get("refresh_token") };
  ok(await session.auth.setSession(tokens));

  person = { sub: "2", email: "bob@other.example", email_verified: true };
  const refused = (await signIn({ domain })).target;
  assert.match(`${refused.search}${refused.hash}`, /error_code=bad_oauth_callback/);

  const disabled = ok(await providers.updateProvider("custom:acme", { enabled: false, name: "Acme Inc." }));
  assert.deepEqual([disabled.enabled, disabled.name], [false, "Acme Inc."]);
  failed(await newClient().auth.signInWithSSO({ domain }), 404, "sso_provider_disabled");
  assert.equal((await session.auth.getUser()).error.name, "AuthSessionMissingError");
  ok(await providers.updateProvider("custom:acme", { enabled: true }));
  assert.equal(ok(await providers.deleteProvider("custom:acme")), null);
  failed(await providers.getProvider("custom:acme"), 404, "custom_provider_not_found");
  failed(
    await newClient().auth.signInWithSSO({ domain }),
    404,
    "sso_provider_not_found",
    "No SSO provider assigned for this domain",
  );
});

test("what is wrong is said", async () => {
  const body = { identifier: "custom:x", name: "X", client_id: "x", client_secret: "y", issuer };
  const oauth2 = { ...body, provider_type: "oauth2", token_url: "https://x.example" };
  failed(await providers.createProvider(oauth2), 400, "validation_failed");
  const away = { ...body, provider_type: "oidc", issuer: "http://127.0.0.1:1" };
  failed(await providers.createProvider(away), 400, "validation_failed");
});
