// A service with a file of leaked passwords, which tests/system/clients/test_javascript.py has made.
import { isAuthWeakPasswordError } from "@supabase/supabase-js";
import assert from "node:assert/strict";
import test from "node:test";
import { admin, failed, newClient, newEmail, ok, password } from "./support.mjs";

const leaked = "Horse-Battery-7";
// bcrypt of it, as another service has stored it.
const hash = "$2b$04$3PxDv0yY3XL.cgtt8QLof.NpPGod35bI47PQOAPo278xyqtLQ0i6q";

test("signUp and updateUser with a leaked password are refused with its reason", async () => {
  const refused = [await newClient().auth.signUp({ email: newEmail(), password: leaked })];
  const email = newEmail();
  ok(await admin.createUser({ email, password, email_confirm: true }));
  const { auth } = newClient();
  ok(await auth.signInWithPassword({ email, password }));
  refused.push(await auth.updateUser({ password: leaked }));
  for (const answer of refused) {
    const error = failed(answer, 422, "weak_password");
    assert.ok(isAuthWeakPasswordError(error));
    assert.deepEqual([error.name, error.reasons], ["AuthWeakPasswordError", ["pwned"]]);
  }
});

test("signInWithPassword with a leaked password succeeds and says so", async () => {
  const email = newEmail();
  ok(await admin.createUser({ email, password_hash: hash, email_confirm: true }));
  const { session, weakPassword } = ok(await newClient().auth.signInWithPassword({ email, password: leaked }));
  assert.equal(session.user.email, email);
  assert.deepEqual(weakPassword.reasons, ["pwned"]);
  assert.match(weakPassword.message, /known from data breaches/);
});

test("signInWithPassword with another password says nothing", async () => {
  const email = newEmail();
  ok(await admin.createUser({ email, password, email_confirm: true }));
  const data = ok(await newClient().auth.signInWithPassword({ email, password }));
  assert.equal("weakPassword" in data, false);
});
