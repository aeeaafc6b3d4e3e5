// A client typed by openapi-typescript from openapi.yaml. test_javascript.py generates api.d.ts next to it.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

const baseUrl = process.env.LATCHKEY_URL;
const [email, password] = [`${randomUUID()}@example.com`, "Correct-Horse-1"];

/** The data of a response without an error. */
function ok<Data, Failure>({ data, error }: { data?: Data; error?: Failure }): Data {
  assert.ok(data, JSON.stringify(error));
  return data;
}

/** A client with a token. */
const as = (token?: string) => createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });

async function mailedCode(): Promise<string> {
  const inbox = { params: { query: { recipient: email } } };
  for (let attempt = 0; attempt < 300; attempt++) {
    const messages = ok(await as(process.env.LATCHKEY_SERVICE_KEY).GET("/dev/inbox", inbox));
    // A browser gets a page.
    assert.ok(typeof messages === "object");
    if (messages[0]?.code) return messages[0].code;
    await setTimeout(100);
  }
  assert.fail(`no message to ${email}`);
}

const anyone = createClient<paths>({ baseUrl });
const created = ok(await anyone.POST("/signup", { body: { email, password } }));
assert.ok("email" in created && created.email_confirmed_at === null);

const password_grant = { params: { query: { grant_type: "password" } } } as const;
const refused = await anyone.POST("/token", { ...password_grant, body: { email, password } });
assert.equal(refused.error?.error_code, "email_not_confirmed");
const code = { type: "email", email, token: await mailedCode() } as const;
const verified = ok(await anyone.POST("/verify", { body: code }));
assert.ok(typeof verified === "object" && "access_token" in verified);

const tokens = ok(await anyone.POST("/token", { ...password_grant, body: { email, password } }));
// A token that stands for an API key has none.
assert.ok("refresh_token" in tokens);
const refresh = { params: { query: { grant_type: "refresh_token" } } } as const;
const { refresh_token } = tokens;
const refreshed = ok(await anyone.POST("/token", { ...refresh, body: { refresh_token } }));

const signedIn = as(refreshed.access_token);
const user: components["schemas"]["User"] = ok(await signedIn.GET("/user"));
assert.deepEqual([user.id, user.email, user.phone], [created.id, email, null]);
// @ts-expect-error: null before the email address is confirmed
assert.ok(user.email_confirmed_at.endsWith("Z"));

const ended: components["schemas"]["Done"] = ok(await signedIn.POST("/logout"));
assert.ok(ended.message);
const { error } = await signedIn.GET("/user");
const ended_code: components["schemas"]["ErrorCode"] | undefined = error?.error_code;
assert.equal(ended_code, "session_not_found");
