// Reads tokens by name, and writes which of them are accepted for an audience: with a nonce as ID tokens by
// openid-client, else as access tokens (RFC 9068) by oauth4webapi, on which it is built.
import { text } from "node:stream/consumers";
import * as oauth from "oauth4webapi";
import * as openid from "openid-client";

const [issuer, audience, nonce] = process.argv.slice(2);
const tokens = JSON.parse(await text(process.stdin));
const execute = [openid.allowInsecureRequests, openid.enableNonRepudiationChecks];
const config = await openid.discovery(new URL(issuer), audience, { client_secret: "x" }, undefined, { execute });

// As the answer of the token endpoint; all else is asked of the service.
async function receives(id_token) {
  const fetched = config[openid.customFetch];
  const answer = { access_token: "x", token_type: "bearer", id_token };
  config[openid.customFetch] = (url, options) =>
    url.endsWith("/oauth/token") ? Response.json(answer) : (fetched ?? fetch)(url, options);
  const callback = new URL(`http://localhost/?code=x&iss=${encodeURIComponent(issuer)}`);
  await openid.authorizationCodeGrant(config, callback, { expectedNonce: nonce, idTokenExpected: true });
}

async function serves(token) {
  const request = new Request("http://localhost/", { headers: { authorization: `Bearer ${token}` } });
  await oauth.validateJwtAccessToken(config.serverMetadata(), request, audience, { [oauth.allowInsecureRequests]: true });
}

const accepted = [];
for (const [name, token] of Object.entries(tokens)) {
  try {
    await (nonce ? receives(token) : serves(token));
    accepted.push(name);
  } catch (error) {
    if (!(error instanceof openid.ClientError || error instanceof oauth.OperationProcessingError)) throw error;
  }
}
console.log(JSON.stringify(accepted));
