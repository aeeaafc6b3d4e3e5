// The client that orval makes: tests/system/interop/test_generated.py generates client.ts next to this file.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import { getUser, listDevInbox, logout, signup, token, verify } from "./client.js";

const [email, password] = [`${randomUUID()}@example.com`, "Correct-Horse-1"];

/** The options of requests with a token. */
const as = (access_token?: string) => ({ headers: { Authorization: `Bearer ${access_token}` } });

async function mailedCode(): Promise<string> {
  for (let attempt = 0; attempt < 300; attempt++) {
    const { data } = await listDevInbox({ recipient: email }, as(process.env.LATCHKEY_SERVICE_KEY));
    assert.ok(Array.isArray(data), JSON.stringify(data));
    if (data[0]?.code) return data[0].code;
    await setTimeout(100);
  }
  throw new Error(`no message to ${email}`);
}

const created = await signup({ email, password });
assert.equal(created.status, 201);
assert.equal(created.data.email, email);

const refused = await token({ email, password }, { grant_type: "password" });
assert.equal(refused.status, 403);
assert.equal(refused.data.error_code, "email_not_confirmed");

// It names no content type, because POST /verify takes forms too.
const json = { headers: { "Content-Type": "application/json" } };
const verified = await verify({ type: "email", email, token: await mailedCode() }, json);
assert.equal(verified.status, 200);
assert.ok(typeof verified.data === "object" && "access_token" in verified.data);

const signedIn = await token({ email, password }, { grant_type: "password" });
assert.equal(signedIn.status, 200);
assert.ok("refresh_token" in signedIn.data);
const { refresh_token } = signedIn.data;
const refreshed = await token({ refresh_token }, { grant_type: "refresh_token" });
assert.equal(refreshed.status, 200);

const session = as(refreshed.data.access_token);
const user = await getUser(session);
assert.equal(user.status, 200);
assert.deepEqual([user.data.id, user.data.email, user.data.phone], [created.data.id, email, null]);
assert.equal((await logout({}, session)).status, 200);
assert.equal((await getUser(session)).status, 401);
