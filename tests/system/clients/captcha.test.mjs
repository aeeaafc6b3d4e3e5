// A service with AUTH_CAPTCHA=altcha: the library of ALTCHA solves, and supabase-js sends options.captchaToken.
import { pbkdf2, solveChallenge } from "altcha/lib";
import test from "node:test";
import { failed, newClient, newEmail, ok, password, url } from "./support.mjs";

const refused = (codes) => [400, "captcha_failed", `captcha protection: request disallowed (${codes})`];

async function captchaToken() {
  const challenge = await (await fetch(`${url}/captcha/challenge`)).json();
  const solution = await solveChallenge({ challenge, deriveKey: pbkdf2.deriveKey });
  return btoa(JSON.stringify({ challenge, solution }));
}

test("captchaToken is asked for, and taken once", async () => {
  const { auth } = newClient();
  const email = newEmail();
  failed(await auth.signUp({ email, password }), ...refused("no captcha_token found"));
  const options = { captchaToken: await captchaToken() };
  ok(await auth.signUp({ email, password, options }));
  failed(await auth.signInWithOtp({ email, options }), ...refused("timeout-or-duplicate"));
  ok(await auth.signInWithOtp({ email, options: { captchaToken: await captchaToken() } }));
  ok(await auth.resetPasswordForEmail(email, { captchaToken: await captchaToken() }));
  ok(await auth.resend({ type: "signup", email, options: { captchaToken: await captchaToken() } }));
});
