// The client of @modelcontextprotocol/sdk: `client.mjs URL PORT [DOCUMENT]`. It prints and does what client.py does.
import { once } from "node:events";
import { createServer } from "node:http";
import { auth } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [serverUrl, port, clientMetadataUrl] = process.argv.slice(2);
const redirectUrl = `http://localhost:${port}/callback`;
const kept = {};
const provider = {
  redirectUrl,
  clientMetadataUrl,
  clientMetadata: {
    client_name: "Reader",
    redirect_uris: [redirectUrl],
    token_endpoint_auth_method: "none",
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    scope: "openid email offline_access",
  },
  state: () => (kept.state = crypto.randomUUID()),
  clientInformation: () => kept.client,
  saveClientInformation: (client) => (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => (kept.tokens = tokens),
  codeVerifier: () => kept.verifier,
  saveCodeVerifier: (verifier) => (kept.verifier = verifier),
  redirectToAuthorization: (url) => console.log(url.href),
  invalidateCredentials: () => delete kept.tokens,
};

// Answer the redirect of the browser, and return its parameters.
async function redirected() {
  const server = createServer().listen(Number(port), "localhost");
  const [request, response] = await once(server, "request");
  response.setHeader("Connection", "close").end("Signed in");
  server.close();
  return new URL(request.url, redirectUrl).searchParams;
}

async function call() {
  const client = new Client({ name: "Reader", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(serverUrl), { authProvider: provider }));
  const { structuredContent } = await client.callTool({ name: "claims" });
  await client.close();
  return { claims: structuredContent, token: kept.tokens.access_token };
}

const answer = redirected();
if ((await auth(provider, { serverUrl })) !== "REDIRECT") throw new Error("no sign-in");
const parameters = await answer;
if (parameters.get("state") !== kept.state) throw new Error("another state");
await auth(provider, { serverUrl, authorizationCode: parameters.get("code") });
const seen = [await call()];
// It refreshes when it has a refresh token.
await auth(provider, { serverUrl });
seen.push(await call());
console.log(JSON.stringify(seen));
await once(process.stdin, "data");
await auth(provider, { serverUrl });
process.exit();
