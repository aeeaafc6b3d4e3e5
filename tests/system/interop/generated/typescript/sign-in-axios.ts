// The client that openapi-generator makes: tests/system/interop/test_generated.py generates it into latchkey/.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import { isAxiosError } from "axios";
import { Configuration, ServiceApi, SessionsApi, SignInApi, UserApi } from "./latchkey/index.js";

const [email, password] = [`${randomUUID()}@example.com`, "Correct-Horse-1"];

/** The configuration of calls with a token. */
const as = (accessToken?: string) => new Configuration({ basePath: process.env.LATCHKEY_URL, accessToken });

async function mailedCode(): Promise<string> {
  for (let attempt = 0; attempt < 300; attempt++) {
    const { data } = await new ServiceApi(as(process.env.LATCHKEY_SERVICE_KEY)).listDevInbox(undefined, email);
    if (data[0]?.code) return data[0].code;
    await setTimeout(100);
  }
  throw new Error(`no message to ${email}`);
}

const anyone = new SignInApi(as());
const created = (await anyone.signup({ email, password })).data;
assert.deepEqual([created.email, created.email_confirmed_at], [email, null]);
await assert.rejects(anyone.token("password", { email, password }), (error) => {
  assert.ok(isAxiosError(error));
  assert.deepEqual([error.response?.status, error.response?.data.error_code], [403, "email_not_confirmed"]);
  return true;
});

const verified = (await anyone.verify({ type: "email", email, token: await mailedCode() })).data;
assert.equal(verified.user.id, created.id);
const signedIn = (await anyone.token("password", { email, password })).data;
const { access_token } = (await anyone.token("refresh_token", { refresh_token: signedIn.refresh_token })).data;

const user = (await new UserApi(as(access_token)).getUser()).data;
assert.deepEqual([user.id, user.email, user.phone], [created.id, email, null]);
assert.equal((await new SessionsApi(as(access_token)).logout()).status, 200);
await assert.rejects(new UserApi(as(access_token)).getUser(), { status: 401 });
