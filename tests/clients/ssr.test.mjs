import { createServerClient } from "@supabase/ssr";
import assert from "node:assert/strict";
import test from "node:test";
import { message, newEmail, ok, open, password, signedIn, url } from "./support.mjs";

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
