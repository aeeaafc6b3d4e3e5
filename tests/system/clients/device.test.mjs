// The device flow of openid-client, unmodified.
import assert from "node:assert/strict";
import test from "node:test";
import * as openid from "openid-client";
import { admin, newEmail, password, serviceKey, url } from "./support.mjs";

const grant = "urn:ietf:params:oauth:grant-type:device_code";

/** A public client with the device grant, configured by what the service says of itself. */
async function television() {
  const response = await fetch(`${new URL(url).origin}/admin/oauth/clients`, {
    method: "POST",
    headers: { Authorization: `Bearer ${serviceKey}`, "Content-Type": "application/json" },
    body: JSON.stringify({ client_name: "Television", client_type: "public", grant_types: ["refresh_token", grant] }),
  });
  const { client_id } = await response.json();
  const { issuer } = await (await fetch(`${url}/.well-known/openid-configuration`)).json();
  return openid.discovery(new URL(issuer), client_id, undefined, openid.None(), { execute: [openid.allowInsecureRequests] });
}

/** A browser with its cookies, without JavaScript. */
function browser() {
  const cookies = new Map();
  let page = "";
  const visit = async (target, form = {}) => {
    for (let hops = 0; hops < 10; hops++) {
      const headers = { Accept: "text/html", Cookie: [...cookies].map((pair) => pair.join("=")).join("; "), ...form.headers };
      const response = await fetch(target, { ...form, headers, redirect: "manual" });
      for (const cookie of response.headers.getSetCookie()) {
        const [name, value] = cookie.split(";")[0].split(/=(.*)/s);
        cookies.set(name, value);
      }
      page = await response.text();
      if (!response.headers.get("Location")) return page;
      [target, form] = [new URL(response.headers.get("Location"), target), {}];
    }
    assert.fail("too many redirects");
  };
  const press = (target, fields) => {
    const [, form_token] = page.match(/name="form_token" value="([0-9a-f]+)"/);
    const headers = { "Content-Type": "application/x-www-form-urlencoded" };
    return visit(target, { method: "POST", headers, body: new URLSearchParams({ form_token, ...fields }) });
  };
  return { visit, press };
}

/** Have a new user sign in, type the code and press a button; return the user. */
async function decide(codes, action) {
  const [email, { visit, press }] = [newEmail(), browser()];
  const { data } = await admin.createUser({ email, password, email_confirm: true });
  const pages = codes.verification_uri.replace(/device$/, "");
  await visit(codes.verification_uri_complete);
  await press(`${pages}sign-in`, { email, password, next: "device" });
  const asked = await press(`${pages}device`, { user_code: codes.user_code });
  const [, request] = asked.match(/name="request" value="([0-9a-f-]+)"/);
  await press(`${pages}device/consent`, { request, action });
  return data.user;
}

test("openid-client waits for the user and gets the tokens", async () => {
  const config = await television();
  const codes = await openid.initiateDeviceAuthorization(config, { scope: "openid email" });
  const [tokens, user] = await Promise.all([
    openid.pollDeviceAuthorizationGrant(config, codes),
    decide(codes, "approve"),
  ]);
  assert.deepEqual([tokens.claims().sub, tokens.claims().email], [user.id, user.email]);
  const { sub } = await openid.fetchUserInfo(config, tokens.access_token, user.id);
  assert.equal(sub, user.id);
  const renewed = await openid.refreshTokenGrant(config, tokens.refresh_token);
  assert.equal(renewed.claims().sid, tokens.claims().sid);
});

test("openid-client is told that the user has denied", async () => {
  const config = await television();
  const codes = await openid.initiateDeviceAuthorization(config, { scope: "openid" });
  await decide(codes, "deny");
  await assert.rejects(openid.pollDeviceAuthorizationGrant(config, codes), { error: "access_denied" });
});
