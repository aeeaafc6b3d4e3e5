import assert from "node:assert/strict";
import test from "node:test";
import {
  admin, autoconfirms, failed, idTokens, message, newClient, newEmail, newPhone, ok, open, password, signedIn,
  tokensOf, url,
} from "./support.mjs";

const needsConfirmation = { skip: autoconfirms && "addresses need no confirmation" };

test("signUp without confirmation signs in", { skip: !autoconfirms && "addresses are confirmed" }, async () => {
  const email = newEmail();
  const { user, session } = ok(await newClient().auth.signUp({ email, password, options: { data: { name: "A" } } }));
  assert.deepEqual([user.email, user.user_metadata.name, session.user.id], [email, "A", user.id]);
  failed(await newClient().auth.signUp({ email, password }), 409, "user_already_exists", "User already registered");
});

test("signUp by email is confirmed by a code", needsConfirmation, async () => {
  const email = newEmail();
  const client = newClient();
  const { user, session } = ok(await client.auth.signUp({ email, password, options: { data: { name: "A" } } }));
  assert.deepEqual([user.email, user.phone, user.user_metadata, session], [email, "", { name: "A" }, null]);
  failed(await client.auth.signInWithPassword({ email, password }), 403, "email_not_confirmed");
  const { code } = await message(email);
  const verified = ok(await client.auth.verifyOtp({ type: "signup", email, token: code }));
  assert.equal(verified.user.email, email);
  assert.equal(ok(await client.auth.getUser()).user.id, verified.user.id);
  ok(await newClient().auth.signInWithPassword({ email, password }));
});

test("signUp by email is confirmed by a link", needsConfirmation, async () => {
  const email = newEmail();
  const client = newClient();
  ok(await client.auth.signUp({ email, password, options: { emailRedirectTo: `${url}/welcome` } }));
  const target = await open((await message(email)).link);
  assert.equal(target.pathname, "/welcome");
  const { user } = ok(await client.auth.setSession(tokensOf(target)));
  assert.equal(user.email, email);
});

test("signUp with PKCE redirects with a code", needsConfirmation, async () => {
  const email = newEmail();
  const client = newClient({ flowType: "pkce" });
  ok(await client.auth.signUp({ email, password }));
  const target = await open((await message(email)).link);
  const { session } = ok(await client.auth.exchangeCodeForSession(target.searchParams.get("code")));
  assert.equal(session.user.email, email);
});

test("signUp by phone is confirmed by a code", needsConfirmation, async () => {
  const phone = newPhone();
  const client = newClient();
  const { user } = ok(await client.auth.signUp({ phone, password }));
  assert.deepEqual([user.phone, user.email], [phone, ""]);
  const { code } = await message(`+${phone}`);
  const verified = ok(await client.auth.verifyOtp({ type: "sms", phone, token: code }));
  assert.deepEqual([verified.user.phone, verified.user.identities[0].identity_data.phone], [phone, phone]);
  ok(await newClient().auth.signInWithPassword({ phone, password }));
});

test("resend sends the confirmation again", needsConfirmation, async () => {
  const email = newEmail();
  const client = newClient();
  ok(await client.auth.signUp({ email, password }));
  const first = await message(email);
  assert.deepEqual(ok(await client.auth.resend({ type: "signup", email })), { user: null, session: null });
  const { code } = await message(email, ({ id }) => id !== first.id);
  ok(await client.auth.verifyOtp({ type: "signup", email, token: code }));
});

test("weak passwords and malformed addresses have errors of their own", async () => {
  const { auth } = newClient();
  const error = failed(await auth.signUp({ email: newEmail(), password: "Short-1" }), 422, "weak_password");
  assert.equal(error.name, "AuthWeakPasswordError");
  assert.equal(error.message, "Password should be at least 8 characters.");
  assert.deepEqual(error.reasons, ["length"]);
  const email = "Unable to validate email address: invalid format";
  failed(await auth.signUp({ email: "alice", password }), 400, "validation_failed", email);
  const phone = "Invalid phone number format (E.164 required)";
  failed(await auth.signInWithOtp({ phone: "0170" }), 400, "validation_failed", phone);
});

test("signInWithPassword refuses a wrong password", async () => {
  const { email } = await signedIn();
  const response = await newClient().auth.signInWithPassword({ email, password: "Wrong-Horse-1" });
  failed(response, 401, "invalid_credentials", "Invalid login credentials");
});

test("signInWithOtp by email signs in by code and by link", async () => {
  const email = newEmail();
  const client = newClient();
  assert.deepEqual(ok(await client.auth.signInWithOtp({ email })), { user: null, session: null });
  const { code } = await message(email);
  failed(await client.auth.verifyOtp({ type: "email", email, token: "abcdef" }), 403, "otp_expired");
  ok(await client.auth.verifyOtp({ type: "email", email, token: code }));

  const other = newEmail();
  ok(await client.auth.signInWithOtp({ email: other }));
  const { link } = await message(other);
  const token_hash = new URL(link).searchParams.get("token");
  const { session } = ok(await newClient().auth.verifyOtp({ type: "email", token_hash }));
  assert.equal(session.user.email, other);
});

test("signInWithOtp with PKCE redirects with a code", async () => {
  const email = newEmail();
  const client = newClient({ flowType: "pkce" });
  ok(await client.auth.signInWithOtp({ email, options: { emailRedirectTo: `${url}/welcome?a=1` } }));
  const target = await open((await message(email)).link);
  assert.equal(target.searchParams.get("a"), "1");
  const code = target.searchParams.get("code");
  const { session } = ok(await client.auth.exchangeCodeForSession(code));
  assert.equal(session.user.email, email);
});

test("signInWithOtp by phone signs in", async () => {
  const phone = newPhone();
  const client = newClient();
  assert.ok(ok(await client.auth.signInWithOtp({ phone })).messageId);
  const { code } = await message(`+${phone}`);
  const { user } = ok(await client.auth.verifyOtp({ type: "sms", phone, token: code }));
  assert.equal(user.phone, phone);
});

test("an unknown authorization code is not found", async () => {
  const stored = new Map();
  const storage = {
    getItem: (key) => stored.get(key) ?? null,
    setItem: (key, value) => stored.set(key, value),
    removeItem: (key) => stored.delete(key),
  };
  const client = newClient({ flowType: "pkce", persistSession: true, storage });
  ok(await client.auth.signInWithOtp({ email: newEmail() }));
  failed(await client.auth.exchangeCodeForSession("unknown"), 404, "flow_state_not_found");
});

test("resetPasswordForEmail leads to a new password", async () => {
  const { email } = await signedIn();
  const client = newClient();
  assert.deepEqual(ok(await client.auth.resetPasswordForEmail(email)), {});
  const { code } = await message(email, ({ kind }) => kind === "recovery");
  ok(await client.auth.verifyOtp({ type: "recovery", email, token: code }));
  ok(await client.auth.updateUser({ password: "Another-Horse-1" }));
  ok(await newClient().auth.signInWithPassword({ email, password: "Another-Horse-1" }));
});

test("signInWithOAuth builds the URL that redirects to the provider", async () => {
  const { url: target } = ok(
    await newClient({ flowType: "pkce" }).auth.signInWithOAuth({
      provider: "google", options: { redirectTo: `${url}/welcome`, scopes: "email", skipBrowserRedirect: true },
    }),
  );
  const response = await fetch(target, { redirect: "manual" });
  assert.equal(response.status, 302);
  const location = new URL(response.headers.get("Location"));
  assert.deepEqual([location.searchParams.get("scope"), location.pathname], ["email", "/authorize"]);
});

test("signInWithIdToken signs in once", async () => {
  const token = idTokens.pop();
  const { session } = ok(await newClient().auth.signInWithIdToken({ provider: "google", token }));
  assert.equal(session.user.app_metadata.provider, "google");
  const again = await newClient().auth.signInWithIdToken({ provider: "google", token });
  failed(again, 400, "bad_oauth_callback", "Bad ID token");
  const other = await newClient().auth.signInWithIdToken({ provider: "apple", token });
  failed(other, 400, "provider_disabled");
  assert.match(other.error.message, /^Provider \(issuer "http:.+"\) is not enabled$/);
});

test("what the service does not have is refused as clients expect", async () => {
  const { auth } = newClient();
  const anonymous = await auth.signInAnonymously();
  failed(anonymous, 422, "anonymous_provider_disabled", "Anonymous sign-ins are disabled");
  const sso = await auth.signInWithSSO({ domain: "example.com" });
  failed(sso, 404, "saml_provider_disabled", "SAML 2.0 is disabled");
  const web3 = await auth.signInWithWeb3({ chain: "solana", message: "m".repeat(64), signature: new Uint8Array(64) });
  failed(web3, 422, "web3_provider_disabled", "Web3 provider is disabled");
});

test("a banned user cannot sign in", async () => {
  const { email, user } = await signedIn();
  const banned = ok(await admin.updateUserById(user.id, { ban_duration: "24h" }));
  assert.ok(banned.user.banned_until);
  failed(await newClient().auth.signInWithPassword({ email, password }), 403, "user_banned");
  ok(await admin.updateUserById(user.id, { ban_duration: "none" }));
  ok(await newClient().auth.signInWithPassword({ email, password }));
});
