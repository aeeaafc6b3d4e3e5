// A browser with a passkey manager: `navigator.credentials`, by tests/support/authenticator.py.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { after } from "node:test";
import { url } from "./support.mjs";

const { origin } = new URL(url);
const root = new URL("../../..", import.meta.url);
const program = spawn(process.env.LATCHKEY_PYTHON, ["-m", "tests.support.authenticator", origin], { cwd: root });
const lines = createInterface({ input: program.stdout })[Symbol.asyncIterator]();
after(() => program.stdin.end());

class PublicKeyCredential {
  constructor(json) {
    Object.assign(this, json);
    this.json = json;
  }

  toJSON() {
    return this.json;
  }
}

const isBytes = (value) => value instanceof ArrayBuffer || ArrayBuffer.isView(value);
const encoded = (_name, value) => (isBytes(value) ? Buffer.from(value).toString("base64url") : value);

/** Options as browsers take them have buffers; the authenticator reads JSON. */
async function ask(method, { publicKey, mediation }) {
  const unasked = method === "create" && mediation === "conditional";
  program.stdin.write(`${JSON.stringify({ method, options: publicKey, unasked }, encoded)}\n`);
  return new PublicKeyCredential(JSON.parse((await lines.next()).value));
}

const credentials = { create: (options) => ask("create", options), get: (options) => ask("get", options) };

/** Make this process look like a browser on the service's origin. */
export function becomeBrowser() {
  const listens = { addEventListener() {}, removeEventListener() {} };
  globalThis.PublicKeyCredential = PublicKeyCredential;
  globalThis.document = { visibilityState: "visible", ...listens };
  globalThis.window = { location: new URL(origin), PublicKeyCredential, ...listens };
  Object.defineProperty(globalThis, "navigator", { value: { credentials }, configurable: true });
}
