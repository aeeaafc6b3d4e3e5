import { createServerClient } from "@supabase/ssr";
import assert from "node:assert/strict";
import test from "node:test";
import { admin, autoconfirms, message, newEmail, ok, open, password, signedIn, url } from "./support.mjs";

/** A request of one browser: each makes a new client, and only the cookies live on. */
function serverClient(cookies) {
  return createServerClient(url, "an-anon-key-that-is-ignored", {
    cookies: {
      getAll: () => [...cookies].map(([name, value]) => ({ name, value })),
      setAll: (changed) => changed.forEach(({ name, value }) => (value ? cookies.set(name, value) : cookies.delete(name))),
    },
  });
}

test("a session lives in the cookies from one request to the next", async () => {
  const { email } = await signedIn();
  const cookies = new Map();
  ok(await serverClient(cookies).auth.signInWithPassword({ email, password }));
  assert.ok(cookies.size > 0);
  assert.equal(ok(await serverClient(cookies).auth.getUser()).user.email, email);
  assert.equal(ok(await serverClient(cookies).auth.getClaims()).claims.email, email);
  ok(await serverClient(cookies).auth.refreshSession());
  assert.equal(ok(await serverClient(cookies).auth.getUser()).user.email, email);
  assert.equal((await serverClient(cookies).auth.signOut()).error, null);
  assert.equal(cookies.size, 0);
});

test("PKCE keeps its verifier in the cookies", async () => {
  const email = newEmail();
  const cookies = new Map();
  ok(await serverClient(cookies).auth.signInWithOtp({ email, options: { emailRedirectTo: `${url}/callback-of-app` } }));
  const target = await open((await message(email)).link);
  const code = target.searchParams.get("code");
  ok(await serverClient(cookies).auth.exchangeCodeForSession(code));
  assert.equal(ok(await serverClient(cookies).auth.getUser()).user.email, email);
});

test("OAuth with PKCE keeps its verifier in the cookies", async () => {
  const cookies = new Map();
  const options = { redirectTo: `${url}/callback-of-app`, skipBrowserRedirect: true };
  const { url: target } = ok(await serverClient(cookies).auth.signInWithOAuth({ provider: "google", options }));
  const page = await open(target);
  ok(await serverClient(cookies).auth.exchangeCodeForSession(page.searchParams.get("code")));
  assert.equal(ok(await serverClient(cookies).auth.getUser()).user.app_metadata.provider, "google");
});

test("the hash of a link's token signs in on the server, in another browser too", async () => {
  const email = newEmail();
  ok(await serverClient(new Map()).auth.signInWithOtp({ email }));
  const token_hash = new URL((await message(email)).link).searchParams.get("token");
  const cookies = new Map();
  ok(await serverClient(cookies).auth.verifyOtp({ type: "email", token_hash }));
  assert.equal(ok(await serverClient(cookies).auth.getUser()).user.email, email);
});

test("the hash of a sign-up's token confirms it as type email", { skip: autoconfirms }, async () => {
  const email = newEmail();
  const cookies = new Map();
  ok(await serverClient(cookies).auth.signUp({ email, password }));
  const token_hash = new URL((await message(email)).link).searchParams.get("token");
  ok(await serverClient(cookies).auth.verifyOtp({ type: "email", token_hash }));
  ok(await serverClient(cookies).auth.getUser());
});

test("a session with much metadata is spread over several cookies", async () => {
  const { email, user } = await signedIn();
  ok(await admin.updateUserById(user.id, { user_metadata: { text: "x".repeat(6000) } }));
  const cookies = new Map();
  ok(await serverClient(cookies).auth.signInWithPassword({ email, password }));
  assert.ok(cookies.size > 1);
  ok(await serverClient(cookies).auth.getUser());
});
