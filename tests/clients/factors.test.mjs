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

test("an administrator lists and removes factors", async () => {
  const { client, user } = await signedIn();
  const { id } = ok(await client.auth.mfa.enroll({ factorType: "totp" }));
  const { factors } = ok(await admin.mfa.listFactors({ userId: user.id }));
  assert.deepEqual(factors.map((factor) => [factor.id, factor.status]), [[id, "unverified"]]);
  ok(await admin.mfa.deleteFactor({ userId: user.id, id }));
  assert.deepEqual(ok(await admin.mfa.listFactors({ userId: user.id })).factors, []);
});
