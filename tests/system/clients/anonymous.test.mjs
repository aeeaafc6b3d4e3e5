import assert from "node:assert/strict";
import test from "node:test";
import {
  admin, autoconfirms, failed, idTokens, message, newClient, newEmail, newPhone, ok, open, password, signedIn, url,
} from "./support.mjs";

const isEnabled = process.env.LATCHKEY_ANONYMOUS === "true";
const whereEnabled = { skip: !isEnabled && "anonymous users are disabled" };
const whereConfirmed = { skip: (!isEnabled || autoconfirms) && "addresses need no confirmation" };

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

/** A client of a new anonymous user. */
async function anonymous() {
  const client = newClient();
  const { user } = ok(await client.auth.signInAnonymously());
  return { client, user };
}

/** Assert that the user is permanent, and still signed in. */
async function assertPermanent(client, { id }) {
  const { user, session } = ok(await client.auth.refreshSession());
  assert.deepEqual([user.id, user.is_anonymous, session.user.id], [id, false, id]);
  assert.equal(ok(await client.auth.getClaims()).claims.is_anonymous, false);
  return user;
}

test("updateUser with an email makes an anonymous user permanent by the code", whereConfirmed, async () => {
  const { client, user } = await anonymous();
  const email = newEmail();
  assert.equal(ok(await client.auth.updateUser({ email })).user.new_email, email);
  const { code } = await message(email);
  ok(await client.auth.verifyOtp({ type: "email_change", email, token: code }));
  assert.equal((await assertPermanent(client, user)).email, email);
  ok(await client.auth.updateUser({ password }));
  assert.equal(ok(await newClient().auth.signInWithPassword({ email, password })).user.id, user.id);
});

test("the link makes an anonymous user permanent without signing in who opened it", whereConfirmed, async () => {
  const { client, user } = await anonymous();
  const email = newEmail();
  ok(await client.auth.updateUser({ email }, { emailRedirectTo: `${url}/welcome` }));
  const target = await open((await message(email)).link);
  assert.equal(target.pathname, "/welcome");
  assert.ok(!target.href.includes("access_token") && !target.searchParams.has("code"), target.href);
  await assertPermanent(client, user);
});

test("updateUser with a phone makes an anonymous user permanent", whereConfirmed, async () => {
  const { client, user } = await anonymous();
  const phone = newPhone();
  ok(await client.auth.updateUser({ phone }));
  const { code } = await message(`+${phone}`);
  ok(await client.auth.verifyOtp({ type: "phone_change", phone, token: code }));
  assert.equal((await assertPermanent(client, user)).phone, phone);
});

const whereAtOnce = { skip: (!isEnabled || !autoconfirms) && "addresses must be confirmed" };
test("without confirmation the first email and password take effect at once", whereAtOnce, async () => {
  const { client, user } = await anonymous();
  const email = newEmail();
  const changed = ok(await client.auth.updateUser({ email, password })).user;
  assert.deepEqual([changed.email, changed.is_anonymous], [email, false]);
  await assertPermanent(client, user);
  ok(await newClient().auth.signInWithPassword({ email, password }));
});

test("an anonymous user needs an address before a password", whereConfirmed, async () => {
  const { client } = await anonymous();
  failed(await client.auth.updateUser({ password }), 422, "validation_failed");
});

test("an anonymous user cannot take the address of another user", whereEnabled, async () => {
  const { email } = await signedIn();
  const { client, user } = await anonymous();
  await client.auth.updateUser({ email });
  assert.equal(ok(await admin.getUserById(user.id)).user.is_anonymous, true);
});

test("linkIdentity makes an anonymous user permanent", whereEnabled, async () => {
  const { client, user } = await anonymous();
  const options = { redirectTo: `${url}/welcome`, skipBrowserRedirect: true };
  const { url: target } = ok(await client.auth.linkIdentity({ provider: "google", options }));
  assert.equal((await open(target)).searchParams.get("error"), null);
  const { identities } = await assertPermanent(client, user);
  assert.ok(identities.some(({ provider }) => provider === "google"));
});

test("linkIdentity with an id_token makes an anonymous user permanent", whereEnabled, async () => {
  const { client, user } = await anonymous();
  const { session } = ok(await client.auth.linkIdentity({ provider: "google", token: idTokens.at(-1) }));
  assert.equal(session.user.is_anonymous, false);
  await assertPermanent(client, user);
});
