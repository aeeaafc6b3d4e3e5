import test from "node:test";
import { failed, newClient } from "./support.mjs";

test("signInAnonymously is disabled by default", async () => {
  const message = "Anonymous sign-ins are disabled";
  failed(await newClient().auth.signInAnonymously(), 422, "anonymous_provider_disabled", message);
});
