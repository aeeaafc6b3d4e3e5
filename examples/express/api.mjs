// An API for the users of Latchkey: PORT=5000 node api.mjs
import { createServer } from "node:http";
import express from "express";
import { createRemoteJWKSet, errors, jwtVerify } from "jose";

const { LATCHKEY_URL: latchkey = "http://localhost:8000", LATCHKEY_SERVICE_ROLE_KEY: serviceRoleKey } = process.env;
// Where this API reaches it, if that is another address than the issuer of the tokens.
const { LATCHKEY_INTERNAL_URL: internal = latchkey } = process.env;
const keys = createRemoteJWKSet(new URL(`${internal}/.well-known/jwks.json`));
const app = express();
const projects = new Map(); // by organization; yours are in a database

/** Keep the token of a request and its claims. */
async function verify(request, response, next) {
  request.token = (request.headers.authorization ?? "").replace(/^Bearer /, "");
  const { payload } = await jwtVerify(request.token, keys, {
    algorithms: ["ES256"], issuer: latchkey, audience: "authenticated",
    requiredClaims: ["exp", "sub", "session_id"], clockTolerance: 10,
  });
  if ("client_id" in payload) throw new errors.JWTInvalid("issued to a client, not for a session");
  request.claims = payload;
  next();
}

/** Ask Latchkey whether the user is still signed in. */
async function requireSession(request, response, next) {
  const answer = await fetch(`${internal}/introspect`, {
    method: "POST",
    headers: { Authorization: `Bearer ${serviceRoleKey}` },
    body: new URLSearchParams({ token: request.token }),
    signal: AbortSignal.timeout(5000),
  });
  if (!answer.ok) throw new Error(`introspection failed with ${answer.status}`);
  if (!(await answer.json()).active) throw new errors.JWTInvalid("the session has ended");
  next();
}

app.get("/me", verify, ({ claims }, response) => {
  response.json({ id: claims.sub, email: claims.email });
});

// The audience says that no second step is missing; `aal` says whether there was one.
app.get("/reports", verify, ({ claims }, response) => {
  if (claims.role !== "admin" || claims.aal !== "aal2") return response.sendStatus(403);
  response.json({ reports: [] });
});

app.get("/drafts", verify, ({ claims }, response) => {
  if (!claims.roles?.includes("editor")) return response.sendStatus(403);
  response.json({ drafts: [] });
});

/** Keep the caller's role in an organization. Tokens of users without organizations lack the claim. */
function requireMember(request, response, next) {
  const { claims: { organizations = {} }, params: { id } } = request;
  // Access tokens have the ids of organizations, and so have these paths.
  if (!Object.hasOwn(organizations, id)) return response.sendStatus(404);
  request.role = organizations[id];
  next();
}

app.get("/organizations/:id/projects", verify, requireMember, ({ params }, response) => {
  response.json({ projects: [...(projects.get(params.id) ?? [])] });
});

app.put("/organizations/:id/projects/:name", verify, requireMember, ({ params: { id, name }, role }, response) => {
  if (!["owner", "admin"].includes(role)) return response.sendStatus(403);
  projects.set(id, (projects.get(id) ?? new Set()).add(name));
  response.json({ projects: [...projects.get(id)] });
});

// An access token outlives a log-out. Ask where that matters, not for every request.
app.post("/payments", verify, requireSession, ({ claims }, response) => {
  if (claims.is_anonymous) return response.sendStatus(403);
  response.json({ paid_by: claims.sub });
});

// If jose cannot fetch the keys, it throws a plain JOSEError or a timeout: the token may be valid.
const unavailable = ["ERR_JOSE_GENERIC", errors.JWKSTimeout.code];
app.use((error, request, response, next) => {
  if (!(error instanceof errors.JOSEError) || unavailable.includes(error.code)) {
    console.error(error);
    return response.sendStatus(503);
  }
  console.warn("Token refused: %j, expected from %s", error.message, latchkey);
  response.set("WWW-Authenticate", 'Bearer error="invalid_token"').sendStatus(401);
});

// An access token contains the user's metadata and can take 24 KiB. Node accepts headers of 16 KiB by default.
const { PORT = "5000" } = process.env;
createServer({ maxHeaderSize: 65_536 }, app).listen(PORT, "127.0.0.1", () => console.log(`Listening on http://localhost:${PORT}`));
