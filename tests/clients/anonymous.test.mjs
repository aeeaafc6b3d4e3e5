import assert from "node:assert/strict";
import test from "node:test";
import { failed, newClient, ok } from "./support.mjs";

const isEnabled = process.env.LATCHKEY_ANONYMOUS === "true";
const whereEnabled = { skip: !isEnabled && "anonymous users are disabled" };

test("signInAnonymously is disabled by default", { skip: isEnabled }, async () => {
  const message = "Anonymous sign-ins are disabled";
  failed(await newClient().auth.signInAnonymously(), 422, "anonymous_provider_disabled", message);
});

test("signInAnonymously makes a user with a session alone", whereEnabled, async () => {
  const client = newClient();
  const { user, session } = ok(await client.auth.signInAnonymously({ options: { data: { theme: "dark" } } }));
  assert.deepEqual([user.is_anonymous, user.email, user.identities], [true, "", []]);
  assert.deepEqual([user.user_metadata, session.user.id], [{ theme: "dark" }, user.id]);
  assert.equal(ok(await client.auth.getClaims()).claims.is_anonymous, true);
  assert.equal(ok(await client.auth.refreshSession()).user.id, user.id);
  assert.notEqual(ok(await newClient().auth.signInAnonymously()).user.id, user.id);
});
