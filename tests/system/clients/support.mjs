// The service under test, its messages, and clients. tests/system/clients/test_javascript.py sets the environment.
import { createClient } from "@supabase/supabase-js";
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

// Clients demand one before Node.js 22, for subscriptions to a database that no test makes.
globalThis.WebSocket ??= class {};

export const url = process.env.LATCHKEY_URL;
export const serviceKey = process.env.LATCHKEY_SERVICE_KEY;
export const autoconfirms = process.env.LATCHKEY_AUTOCONFIRM === "true";
export const idTokens = JSON.parse(process.env.LATCHKEY_ID_TOKENS ?? "[]");
export const password = "Correct-Horse-1";

/** A browser's or a server's client, without a session. */
export function newClient(auth = {}, key = "an-anon-key-that-is-ignored") {
  return createClient(url, key, { auth: { autoRefreshToken: false, persistSession: false, ...auth } });
}

export const admin = newClient({}, serviceKey).auth.admin;

export const newEmail = () => `${randomUUID()}@example.com`;
export const newPhone = () => `49170${Math.floor(Math.random() * 1e8 + 1e8)}`;

/** The data of a response without an error. */
export function ok({ data, error }) {
  assert.equal(error, null);
  return data;
}

export function failed({ error }, status, code, message) {
  assert.ok(error, "no error");
  assert.deepEqual([error.status, error.code], [status, code]);
  if (message) assert.equal(error.message, message);
  return error;
}

/** A confirmed user with a session. */
export async function signedIn(auth = {}) {
  const email = newEmail();
  const { user } = ok(await admin.createUser({ email, password, email_confirm: true }));
  const client = newClient(auth);
  ok(await client.auth.signInWithPassword({ email, password }));
  return { client, email, user };
}

/** The newest message to an address, as soon as it has been sent. */
export async function message(to, isWanted = () => true) {
  for (let tries = 0; tries < 300; tries++) {
    const headers = { apikey: serviceKey };
    const response = await fetch(`${url}/dev/inbox?recipient=${encodeURIComponent(to)}`, { headers });
    const found = (await response.json()).find(isWanted);
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.fail(`no message to ${to}`);
}

const own = /^(\/auth\/v1)?\/(verify|authorize|link-identity|(providers\/[\w-]+\/)?callback)$/;

/** Open a link as a browser does, and press the button of each page; return the URL of the application's page. */
export async function open(link, { losesCookies = false } = {}) {
  const cookies = new Map();
  let target = new URL(link);
  let form = {};
  for (let hops = 0; hops < 10; hops++) {
    const headers = { Accept: "text/html", Cookie: [...cookies].map((pair) => pair.join("=")).join("; "), ...form.headers };
    const response = await fetch(target, { ...form, headers, redirect: "manual" });
    for (const cookie of response.headers.getSetCookie()) {
      const [name, value] = cookie.split(";")[0].split(/=(.*)/s);
      if (!losesCookies) cookies.set(name, value);
    }
    const page = await response.text();
    const refresh = page.match(/<meta http-equiv="refresh" content="0;url=([^"]*)">/);
    const location = response.headers.get("Location") ?? refresh?.[1].replaceAll("&amp;", "&");
    if (!location) {
      form = formOf(page, target);
      target.search = "";
      continue;
    }
    form = {};
    target = new URL(location, target);
    if (target.origin === url && !own.test(target.pathname)) return target;
  }
  assert.fail(`${link} leads nowhere`);
}

/** The submission of a page's form. */
function formOf(page, { origin }) {
  const fields = [...page.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)">/g)];
  assert.ok(fields.length, page);
  const body = new URLSearchParams(fields.map(([, name, value]) => [name, value.replaceAll("&amp;", "&")]));
  return { method: "POST", body, headers: { Origin: origin, "Sec-Fetch-Site": "same-origin" } };
}

/** The tokens in the fragment of a redirect. */
export function tokensOf(target) {
  return Object.fromEntries(new URLSearchParams(target.hash.slice(1)));
}
