// Second factors: mfa and admin.mfa.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";

import { admin, failed, newClient, ok, password, signedIn } from "./support.mjs";

/** The code of an authenticator app (RFC 6238), of this step of 30 seconds or a later one. */
function code(secret, steps = 0) {
  const bits = [...secret].map((letter) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(letter).toString(2).padStart(5, "0"));
  const key = Buffer.from(bits.join("").match(/.{8}/g).map((byte) => parseInt(byte, 2)));
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000) + steps));
  const digest = createHmac("sha1", key).update(counter).digest();
  const number = digest.readUInt32BE(digest[19] & 15) & 0x7fffffff;
  return String(number % 1_000_000).padStart(6, "0");
}

test("an authenticator app is enrolled, verified and removed", async () => {
  const { client, email } = await signedIn();
  const { mfa } = client.auth;
  const { id, totp } = ok(await mfa.enroll({ factorType: "totp", friendlyName: "Phone" }));
  assert.ok(totp.qr_code.startsWith("data:image/svg+xml;utf-8,<svg "));
  failed(await mfa.challengeAndVerify({ factorId: id, code: "000000" }), 422, "mfa_verification_failed", "Invalid TOTP code entered");
  ok(await mfa.challengeAndVerify({ factorId: id, code: code(totp.secret) }));
  assert.deepEqual(ok(await mfa.listFactors()).totp.map((factor) => factor.friendly_name), ["Phone"]);

  const other = newClient();
  ok(await other.auth.signInWithPassword({ email, password }));
  let levels = ok(await other.auth.mfa.getAuthenticatorAssuranceLevel());
  assert.deepEqual([levels.currentLevel, levels.nextLevel], ["aal1", "aal2"]);
  // The client takes this token for valid, because GET /user does: servers look at the audience.
  const { claims, header } = ok(await other.auth.getClaims());
  assert.deepEqual([header.alg, claims.aud, claims.next_aal], ["HS256", "second_step", "aal2"]);
  assert.equal(ok(await other.auth.getUser()).user.aud, "authenticated");
  failed(await other.auth.updateUser({ password: "Another-Horse-1" }), 403, "insufficient_aal");
  failed(await other.auth.updateUser({ data: { x: 1 } }), 403, "insufficient_aal");
  const { id: challengeId } = ok(await other.auth.mfa.challenge({ factorId: id }));
  ok(await other.auth.mfa.verify({ factorId: id, challengeId, code: code(totp.secret, 1) }));
  levels = ok(await other.auth.mfa.getAuthenticatorAssuranceLevel());
  assert.deepEqual([levels.currentLevel, levels.nextLevel], ["aal2", "aal2"]);
  assert.equal(levels.currentAuthenticationMethods.at(-1).method, "totp");
  assert.equal(ok(await other.auth.getClaims()).claims.aud, "authenticated");
  ok(await other.auth.updateUser({ password: "Another-Horse-1" }));
  assert.equal(ok(await other.auth.mfa.unenroll({ factorId: id })).id, id);
  ok(await other.auth.refreshSession());
  assert.equal(ok(await other.auth.mfa.getAuthenticatorAssuranceLevel()).currentLevel, "aal1");
});

test("recovery codes are generated, counted, used, replaced and removed", async () => {
  const { client, email } = await signedIn({ experimental: { recoveryCodes: true } });
  const { mfa } = client.auth;
  failed(await mfa.recoveryCodes.generate(), 403, "insufficient_aal");
  failed(await mfa.recoveryCodes.getStatus(), 404, "mfa_factor_not_found");
  const { id, totp } = ok(await mfa.enroll({ factorType: "totp" }));
  ok(await mfa.challengeAndVerify({ factorId: id, code: code(totp.secret) }));
  const made = ok(await mfa.recoveryCodes.generate({ friendlyName: "Drawer" }));
  assert.deepEqual([made.type, made.friendly_name, made.total, made.codes.length], ["recovery_code", "Drawer", 10, 10]);
  failed(await mfa.recoveryCodes.generate(), 422, "mfa_verified_factor_exists");

  const other = newClient({ experimental: { recoveryCodes: true } });
  ok(await other.auth.signInWithPassword({ email, password }));
  const events = [];
  other.auth.onAuthStateChange((event) => events.push(event));
  failed(await other.auth.mfa.recoveryCodes.verify({ code: "0000-0000-0000-0000" }), 422, "mfa_verification_failed");
  const typed = made.codes[0].match(/.{4}/g).join("-").toUpperCase();
  ok(await other.auth.mfa.recoveryCodes.verify({ code: typed }));
  assert.ok(events.includes("MFA_CHALLENGE_VERIFIED"));
  const levels = ok(await other.auth.mfa.getAuthenticatorAssuranceLevel());
  assert.deepEqual([levels.currentLevel, levels.currentAuthenticationMethods.at(-1).method], ["aal2", "mfa/recovery_code"]);
  const { id: set, type, total, remaining } = ok(await other.auth.mfa.recoveryCodes.getStatus());
  assert.deepEqual([set, type, total, remaining], [made.id, "recovery_code", 10, 9]);
  assert.deepEqual(ok(await other.auth.mfa.listFactors()).recovery_code, []);

  const again = ok(await other.auth.mfa.recoveryCodes.regenerate());
  assert.deepEqual([again.id, again.friendly_name, again.total], [made.id, "Drawer", 10]);
  failed(await client.auth.mfa.recoveryCodes.verify({ code: made.codes[1] }), 422, "mfa_verification_failed");
  assert.equal(ok(await other.auth.mfa.recoveryCodes.unenroll()).id, made.id);
  failed(await other.auth.mfa.recoveryCodes.getStatus(), 404, "mfa_factor_not_found");
  failed(await other.auth.mfa.recoveryCodes.regenerate(), 404, "mfa_factor_not_found");
  failed(await other.auth.mfa.recoveryCodes.unenroll(), 404, "mfa_factor_not_found");
});

test("an administrator lists and removes factors", async () => {
  const { client, user } = await signedIn();
  const { id } = ok(await client.auth.mfa.enroll({ factorType: "totp" }));
  const { factors } = ok(await admin.mfa.listFactors({ userId: user.id }));
  assert.deepEqual(factors.map((factor) => [factor.id, factor.status]), [[id, "unverified"]]);
  ok(await admin.mfa.deleteFactor({ userId: user.id, id }));
  assert.deepEqual(ok(await admin.mfa.listFactors({ userId: user.id })).factors, []);
});
