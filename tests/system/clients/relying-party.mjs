// An application of one user that signs in by openid-client, unmodified. tests/support/relying_parties.py runs it.
import { createServer } from "node:http";
import * as openid from "openid-client";

const { ISSUER, CLIENT_ID, SCOPES, PORT } = process.env;
const own = `http://localhost:${PORT}`;
const metadata = { id_token_signed_response_alg: "ES256" };
// The second checks signatures, in spite of TLS.
const execute = [openid.allowInsecureRequests, openid.enableNonRepudiationChecks];
const config = await openid.discovery(new URL(ISSUER), CLIENT_ID, metadata, openid.None(), { execute });
let checks;
let tokens;
let claims;

const pages = {
  async "/"() {
    if (tokens) {
      const userinfo = await openid.fetchUserInfo(config, tokens.access_token, claims.sub);
      return { id_token: claims, userinfo, access_token: tokens.access_token, refresh_token: tokens.refresh_token };
    }
    const pkceCodeVerifier = openid.randomPKCECodeVerifier();
    checks = { pkceCodeVerifier, expectedState: openid.randomState(), expectedNonce: openid.randomNonce() };
    return openid.buildAuthorizationUrl(config, {
      redirect_uri: `${own}/callback`,
      scope: SCOPES,
      code_challenge: await openid.calculatePKCECodeChallenge(pkceCodeVerifier),
      code_challenge_method: "S256",
      state: checks.expectedState,
      nonce: checks.expectedNonce,
    });
  },

  async "/callback"(url) {
    tokens = await openid.authorizationCodeGrant(config, url, { ...checks, idTokenExpected: true });
    claims = tokens.claims();
    return new URL(own);
  },

  async "/refresh"() {
    try {
      const refreshed = await openid.refreshTokenGrant(config, tokens.refresh_token);
      tokens = { id_token: tokens.id_token, ...refreshed };
      return new URL(own);
    } catch (error) {
      return new URL(`${own}/refused?error_code=${error.error}`);
    }
  },

  async "/logout"() {
    const id_token_hint = tokens.id_token;
    tokens = undefined;
    return openid.buildEndSessionUrl(config, { id_token_hint, post_logout_redirect_uri: `${own}/goodbye` });
  },
};

async function answer(request, response) {
  const url = new URL(request.url, own);
  try {
    const said = await (pages[url.pathname]?.(url) ?? "Goodbye");
    if (said instanceof URL) response.writeHead(302, { Location: said.href }).end();
    else response.end(typeof said === "string" ? said : JSON.stringify(said));
  } catch (error) {
    console.error(error);
    response.writeHead(500).end(`${error} ${error.cause ?? ""} ${JSON.stringify(error.cause ?? {})}`);
  }
}

createServer(answer).listen(Number(PORT), "127.0.0.1");
