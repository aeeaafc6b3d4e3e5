import assert from "node:assert/strict";
import test from "node:test";
import {
  admin, autoconfirms, failed, message, newClient, newEmail, newPhone, ok, open, password,
  signedIn, tokensOf, url,
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
  const early = await client.auth.signInWithPassword({ email, password });
  failed(early, 403, "email_not_confirmed", "Email not confirmed");
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

test("signUp by phone without confirmation signs in", { skip: !autoconfirms && "addresses are confirmed" }, async () => {
  const phone = newPhone();
  const { user, session } = ok(await newClient().auth.signUp({ phone, password }));
  assert.deepEqual([user.phone, session.user.id], [phone, user.id]);
});

test("signUp of a taken email does not tell that it is taken", needsConfirmation, async () => {
  const { email } = await signedIn();
  const taken = ok(await newClient().auth.signUp({ email, password }));
  const free = ok(await newClient().auth.signUp({ email: newEmail(), password }));
  assert.deepEqual(Object.keys(taken.user).sort(), Object.keys(free.user).sort());
  assert.equal(taken.session, null);
});

test("resend sends the code to a phone again", needsConfirmation, async () => {
  const phone = newPhone();
  const client = newClient();
  ok(await client.auth.signUp({ phone, password }));
  const first = await message(`+${phone}`);
  ok(await client.auth.resend({ type: "sms", phone }));
  const { code } = await message(`+${phone}`, ({ id }) => id !== first.id);
  ok(await client.auth.verifyOtp({ type: "sms", phone, token: code }));
});

test("weak passwords and malformed addresses have errors of their own", async () => {
  const { auth } = newClient();
  const error = failed(await auth.signUp({ email: newEmail(), password: "Shrtq-1" }), 422, "weak_password");
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

test("an authorization code is of use to the client that asked for it alone", async () => {
  const email = newEmail();
  const [client, thief] = [newClient({ flowType: "pkce" }), newClient({ flowType: "pkce" })];
  ok(await client.auth.signInWithOtp({ email }));
  ok(await thief.auth.signInWithOtp({ email: newEmail() }));
  const code = (await open((await message(email)).link)).searchParams.get("code");
  failed(await thief.auth.exchangeCodeForSession(code), 400, "bad_code_verifier");
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

test("resetPasswordForEmail with PKCE redirects with a code that tells what it is for", async () => {
  const { email } = await signedIn();
  const client = newClient({ flowType: "pkce" });
  const events = [];
  client.auth.onAuthStateChange((event) => events.push(event));
  ok(await client.auth.resetPasswordForEmail(email, { redirectTo: `${url}/new-password` }));
  const target = await open((await message(email, ({ kind }) => kind === "recovery")).link);
  assert.equal(target.pathname, "/new-password");
  ok(await client.auth.exchangeCodeForSession(target.searchParams.get("code")));
  assert.ok(events.includes("PASSWORD_RECOVERY"), events);
  ok(await client.auth.updateUser({ password: "Another-Horse-1" }));
});

test("a spent link redirects with an error that the clients read", async () => {
  const email = newEmail();
  ok(await newClient().auth.signInWithOtp({ email, options: { emailRedirectTo: `${url}/welcome` } }));
  const { link } = await message(email);
  await open(link);
  const response = await fetch(link, { redirect: "manual" });
  const { error, error_code, error_description } = tokensOf(new URL(response.headers.get("Location")));
  const expected = ["access_denied", "otp_expired", "Token has expired or is invalid"];
  assert.deepEqual([error, error_code, error_description], expected);
});

test("a banned user cannot sign in", async () => {
  const { email, user } = await signedIn();
  const banned = ok(await admin.updateUserById(user.id, { ban_duration: "24h" }));
  assert.ok(banned.user.banned_until);
  failed(await newClient().auth.signInWithPassword({ email, password }), 403, "user_banned", "User is banned");
  ok(await admin.updateUserById(user.id, { ban_duration: "none" }));
  ok(await newClient().auth.signInWithPassword({ email, password }));
});
