// A client typed by openapi-typescript from openapi.yaml. test_javascript.py generates api.d.ts next to it.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

const baseUrl = process.env.LATCHKEY_URL;
const [email, password] = [`${randomUUID()}@example.com`, "Correct-Horse-1"];

/** The data of a response without an error. */
function ok<Data, Failure>({ data, error }: { data?: Data; error?: Failure }): Data {
  assert.ok(data, JSON.stringify(error));
  return data;
}

const anyone = createClient<paths>({ baseUrl });
const created = ok(await anyone.POST("/signup", { body: { email, password } }));
assert.ok("access_token" in created);

const password_grant = { params: { query: { grant_type: "password" } } } as const;
const tokens = ok(await anyone.POST("/token", { ...password_grant, body: { email, password } }));
// A token that stands for an API key has none.
assert.ok("refresh_token" in tokens);
const refresh = { params: { query: { grant_type: "refresh_token" } } } as const;
const { refresh_token } = tokens;
const refreshed = ok(await anyone.POST("/token", { ...refresh, body: { refresh_token } }));

const headers = { Authorization: `Bearer ${refreshed.access_token}` };
const signedIn = createClient<paths>({ baseUrl, headers });
const user: components["schemas"]["User"] = ok(await signedIn.GET("/user"));
assert.deepEqual([user.id, user.email, user.phone], [created.id, email, null]);
// @ts-expect-error: null before the email address is confirmed
assert.ok(user.email_confirmed_at.endsWith("Z"));

const ended: components["schemas"]["Done"] = ok(await signedIn.POST("/logout"));
assert.ok(ended.message);
const { error } = await signedIn.GET("/user");
const code: components["schemas"]["ErrorCode"] | undefined = error?.error_code;
assert.equal(code, "session_not_found");
