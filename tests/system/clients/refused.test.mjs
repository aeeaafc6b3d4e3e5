// What the service does not have: the clients get an answer that they can show, at once.
import { randomUUID } from "node:crypto";
import test from "node:test";
import { admin, failed, newClient, signedIn } from "./support.mjs";

const id = randomUUID();

test("SAML and Web3 are disabled", async () => {
  const { auth } = newClient();
  for (const who of [{ domain: "example.com" }, { providerId: id }]) {
    failed(await auth.signInWithSSO(who), 404, "saml_provider_disabled", "SAML 2.0 is disabled");
  }
  for (const chain of ["solana", "ethereum"]) {
    const signature = chain === "solana" ? new Uint8Array(64) : `0x${"0".repeat(130)}`;
    const response = await auth.signInWithWeb3({ chain, message: "m".repeat(64), signature });
    failed(response, 422, "web3_provider_disabled", "Web3 provider is disabled");
  }
});

test("factors by phone are refused", async () => {
  const { client } = await signedIn();
  const response = await client.auth.mfa.enroll({ factorType: "phone", phone: "491701234567" });
  failed(response, 422, "mfa_phone_enroll_not_enabled", "MFA enroll is disabled for Phone");
});

test("customers' providers are disabled", async () => {
  const { customProviders } = admin;
  failed(await customProviders.listProviders(), 404, "feature_disabled");
  failed(await customProviders.createProvider({ identifier: "custom:acme" }), 404, "feature_disabled");
  failed(await customProviders.getProvider("custom:acme"), 404, "feature_disabled");
  failed(await customProviders.updateProvider("custom:acme", {}), 404, "feature_disabled");
  failed(await customProviders.deleteProvider("custom:acme"), 404, "feature_disabled");
});
