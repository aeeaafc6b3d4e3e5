import assert from "node:assert/strict";
import { createHmac, randomUUID } from "node:crypto";
import test from "node:test";
import { admin, failed, message, newClient, newEmail, newPhone, ok, open, password, signedIn, tokensOf, url } from "./support.mjs";

test("createUser, getUserById and updateUserById", async () => {
  const email = newEmail();
  const attributes = { email, password, email_confirm: true, user_metadata: { name: "A" }, app_metadata: { plan: "pro" } };
  const { user } = ok(await admin.createUser(attributes));
  assert.deepEqual([user.email, user.phone, user.user_metadata.name], [email, "", "A"]);
  assert.deepEqual(user.app_metadata, { plan: "pro", provider: "email", providers: ["email"] });
  assert.equal(ok(await admin.getUserById(user.id)).user.id, user.id);

  const changes = { user_metadata: { name: "B" }, password: "Another-Horse-1", phone: newPhone(), phone_confirm: true };
  const changed = ok(await admin.updateUserById(user.id, changes)).user;
  assert.deepEqual([changed.user_metadata.name, changed.phone], ["B", changes.phone]);
  ok(await newClient().auth.signInWithPassword({ phone: changes.phone, password: "Another-Horse-1" }));
});

test("createUser keeps the id, the hash of the password and the ban of a user who moves in", async () => {
  const [email, id] = [newEmail(), randomUUID()];
  // bcrypt of "a password of 2019".
  const password_hash = "$2a$04$BIvVHMENkT2qU1rtnp/bUORJ1vJCX..ABlSjqNeuCiWm5RRpESdum";
  const { user } = ok(await admin.createUser({ id, email, password_hash, email_confirm: true, ban_duration: "24h" }));
  assert.equal(user.id, id);
  failed(await newClient().auth.signInWithPassword({ email, password: "a password of 2019" }), 403, "user_banned");
  ok(await admin.updateUserById(id, { ban_duration: "none" }));
  ok(await newClient().auth.signInWithPassword({ email, password: "a password of 2019" }));
});

test("updateUserById confirms an address", async () => {
  const email = newEmail();
  const { user } = ok(await admin.createUser({ email, password }));
  failed(await newClient().auth.signInWithPassword({ email, password }), 403, "email_not_confirmed");
  ok(await admin.updateUserById(user.id, { email_confirm: true }));
  ok(await newClient().auth.signInWithPassword({ email, password }));
});

test("roles of the service cannot be given to a user", async () => {
  const { user } = await signedIn();
  failed(await admin.updateUserById(user.id, { role: "service_role" }), 400, "validation_failed");
});

test("createUser with a phone alone", async () => {
  const phone = newPhone();
  const { user } = ok(await admin.createUser({ phone, password, phone_confirm: true }));
  assert.deepEqual([user.phone, user.email], [phone, ""]);
  ok(await newClient().auth.signInWithPassword({ phone, password }));
});

test("createUser refuses a taken email and a weak password", async () => {
  const { email } = await signedIn();
  failed(await admin.createUser({ email, password }), 409, "email_exists");
  const error = failed(await admin.createUser({ email: newEmail(), password: "short" }), 400, "weak_password");
  assert.equal(error.name, "AuthWeakPasswordError");
});

test("an unknown user is not found", async () => {
  failed(await admin.getUserById(randomUUID()), 404, "user_not_found", "User not found");
  failed(await admin.updateUserById(randomUUID(), { password }), 404, "user_not_found");
});

test("listUsers pages through all users", async () => {
  await signedIn();
  await signedIn();
  const page = ok(await admin.listUsers({ page: 1, perPage: 1 }));
  assert.deepEqual([page.users.length, page.aud, page.nextPage], [1, "authenticated", 2]);
  const all = ok(await admin.listUsers({ perPage: 1000 }));
  assert.ok(all.users.length >= 2);
  assert.equal(page.total, all.users.length);
  assert.ok(ok(await admin.listUsers()).users.length >= 2);
});

test("deleteUser deletes once", async () => {
  const { client, user } = await signedIn();
  failed(await admin.deleteUser(user.id, true), 400, "validation_failed");
  ok(await admin.deleteUser(user.id));
  failed(await client.auth.getUser(), 401, "user_not_found");
  failed(await admin.deleteUser(user.id), 404, "user_not_found");
});

test("inviteUserByEmail sends a link that signs in", async () => {
  const email = newEmail();
  const options = { data: { name: "A" }, redirectTo: `${url}/welcome` };
  const { user } = ok(await admin.inviteUserByEmail(email, options));
  assert.ok(user.invited_at);
  assert.deepEqual([user.email, user.user_metadata.name], [email, "A"]);
  const target = await open((await message(email)).link);
  assert.equal(target.pathname, "/welcome");
  ok(await newClient().auth.setSession(tokensOf(target)));
});

for (const type of ["signup", "invite", "magiclink", "recovery"]) {
  test(`generateLink of type ${type} verifies by its hash`, async () => {
    const email = ["signup", "invite"].includes(type) ? newEmail() : (await signedIn()).email;
    const { properties, user } = ok(
      await admin.generateLink({ type, email, password, options: { redirectTo: `${url}/welcome` } }),
    );
    assert.deepEqual([user.email, properties.verification_type, properties.redirect_to], [email, type, `${url}/welcome`]);
    assert.ok(properties.action_link.endsWith(`redirect_to=${url}/welcome`));
    const verified = await newClient().auth.verifyOtp({ type, token_hash: properties.hashed_token });
    assert.equal(ok(verified).user.email, email);
  });
}

for (const type of ["email_change_current", "email_change_new"]) {
  test(`generateLink of type ${type} changes the email`, async () => {
    const { email } = await signedIn();
    const newAddress = newEmail();
    const { properties } = ok(await admin.generateLink({ type, email, newEmail: newAddress }));
    const token_hash = properties.hashed_token;
    const verified = ok(await newClient().auth.verifyOtp({ type: "email_change", token_hash }));
    assert.equal(verified.user.email, newAddress);
  });
}

test("signOut ends the sessions of a token's user", async () => {
  const { client } = await signedIn();
  const { session } = ok(await client.auth.getSession());
  assert.equal((await admin.signOut(session.access_token)).error, null);
  assert.equal((await client.auth.getUser()).error.name, "AuthSessionMissingError");
});

test("signOut with a scope ends this session or the others", async () => {
  const { client, email } = await signedIn();
  const other = newClient();
  ok(await other.auth.signInWithPassword({ email, password }));
  const { session } = ok(await client.auth.getSession());
  assert.equal((await admin.signOut(session.access_token, "others")).error, null);
  ok(await client.auth.getUser());
  assert.equal((await other.auth.getUser()).error.name, "AuthSessionMissingError");
  assert.equal((await admin.signOut(session.access_token, "local")).error, null);
  assert.equal((await client.auth.getUser()).error.name, "AuthSessionMissingError");
});

test("a JWT of the service role is a key", { skip: !process.env.LATCHKEY_SECRET && "it is not by default" }, async () => {
  const keyOf = (role, secret) => {
    const parts = [{ alg: "HS256", typ: "JWT" }, { role, iss: "supabase", iat: 1700000000, exp: 2000000000 }];
    const signed = parts.map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".");
    return `${signed}.${createHmac("sha256", secret).update(signed).digest("base64url")}`;
  };
  const { LATCHKEY_SECRET: secret } = process.env;
  const { admin: byJwt } = newClient({}, keyOf("service_role", secret)).auth;
  ok(await byJwt.listUsers());
  failed(await newClient({}, keyOf("anon", secret)).auth.admin.listUsers(), 401, "bad_jwt");
  failed(await newClient({}, keyOf("service_role", "another secret")).auth.admin.listUsers(), 401, "bad_jwt");
  // The anon key of the old project still is any text.
  ok(await newClient({}, keyOf("anon", secret)).auth.signUp({ email: newEmail(), password }));
});

test("a user's token is not enough", async () => {
  const { client } = await signedIn();
  const { session } = ok(await client.auth.getSession());
  failed(await newClient({}, session.access_token).auth.admin.listUsers(), 403, "not_admin");
});
