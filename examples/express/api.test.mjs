// Tests of the API against a real Latchkey: node --test
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { after, before, beforeEach, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";

const { LATCHKEY_COMMAND = "latchkey", PORT = "5055" } = process.env;
const api = `http://127.0.0.1:${PORT}`;
const settings = {
  AUTH_ANONYMOUS_ENABLED: "true", AUTH_ORGANIZATIONS: "users", AUTH_TOKEN_CLAIMS: '{"roles": "app_metadata.roles"}',
};
const running = [];
let key, control, service;

function run(command, options, environment) {
  const stdio = ["pipe", "pipe", "inherit"];
  running.push(spawn(command, options, { stdio, env: { ...process.env, ...environment } }));
  return running.at(-1);
}

async function ask(path, members = {}) {
  const response = await fetch(control + path, {
    method: "POST", headers: { Authorization: `Bearer ${key}` }, body: JSON.stringify(members),
  });
  const answer = await response.json();
  assert.ok(response.ok, answer?.error);
  return answer;
}

async function authorization(user, options) {
  const { access_token: token } = await ask("/token", { user_id: user.id, ...options });
  return { Authorization: `Bearer ${token}` };
}

async function get(path, user, options) {
  return fetch(api + path, { headers: await authorization(user, options) });
}

async function put(path, user) {
  return fetch(api + path, { method: "PUT", headers: await authorization(user) });
}

before(async () => {
  const { stdout } = run(LATCHKEY_COMMAND, ["test-server", "--json"]);
  for await (const line of createInterface({ input: stdout })) {
    ({ key, control } = JSON.parse(line));
    break;
  }
  service = await ask("/start", { settings });
  control = service.control;
  run("node", ["api.mjs"], { PORT, LATCHKEY_URL: service.url, LATCHKEY_SERVICE_ROLE_KEY: service.service_role_key });
  while (!await fetch(api).catch(() => false)) await pause(50);
});
beforeEach(() => ask("/reset"));
after(() => running.forEach((each) => each.kill()));

test("a user is known by the token", async () => {
  const alice = await ask("/user");
  const response = await get("/me", alice);
  assert.deepEqual(await response.json(), { id: alice.id, email: alice.email });
  assert.equal((await get("/me", alice, { expires_in: -60 })).status, 401);
});

test("reports are for administrators with a second step", async () => {
  const carol = await ask("/user", { role: "admin", factors: ["totp"] });
  assert.equal((await get("/reports", carol)).status, 200);
  assert.equal((await get("/reports", carol, { aal: "aal1" })).status, 401);
  assert.equal((await get("/reports", await ask("/user", { factors: ["totp"] }))).status, 403);
  assert.equal((await get("/reports", await ask("/user", { role: "admin" }))).status, 403);
});

test("drafts are for editors", async () => {
  for (const [roles, status] of [[[], 403], [["reader", "editors"], 403], [["reader", "editor"], 200]]) {
    // Users write user_metadata themselves.
    const dave = await ask("/user", { app_metadata: { roles }, user_metadata: { roles: ["editor"] } });
    assert.equal((await get("/drafts", dave)).status, status);
  }
});

test("projects of an organization are for its members", async () => {
  const [alice, bob, carol, dave] = await ask("/users", { count: 4 });
  const acme = await ask("/organization", { name: "Acme", owner: alice.id, members: { [bob.id]: "member" } });
  const globex = await ask("/organization", { name: "Globex", owner: carol.id });
  const path = `/organizations/${acme.id}/projects`;
  for (const _ of [1, 2]) {
    assert.deepEqual(await (await put(`${path}/Rocket`, alice)).json(), { projects: ["Rocket"] });
  }
  assert.deepEqual(await (await get(path, bob)).json(), { projects: ["Rocket"] });
  assert.equal((await put(`${path}/Evil`, bob)).status, 403);
  // Carol is in another organization, Dave in none.
  for (const stranger of [carol, dave]) {
    assert.equal((await get(path, stranger)).status, 404);
    assert.equal((await put(`${path}/Evil`, stranger)).status, 404);
  }
  assert.deepEqual(await (await get(`/organizations/${globex.id}/projects`, carol)).json(), { projects: [] });
  // Objects have members that a token does not.
  assert.equal((await get("/organizations/constructor/projects", carol)).status, 404);
});

test("a removed member loses the projects with the next token", async () => {
  const [alice, bob] = await ask("/users", { count: 2 });
  const acme = await ask("/organization", { name: "Acme", owner: alice.id, members: { [bob.id]: "admin" } });
  const path = `/organizations/${acme.id}/projects`;
  const headers = await authorization(bob);
  await ask("/member", { organization_id: acme.id, user_id: bob.id, role: null });
  assert.equal((await fetch(api + path, { headers })).status, 200);
  assert.equal((await get(path, bob)).status, 404);
});

test("anonymous users cannot pay", async () => {
  const headers = await authorization(await ask("/user", { anonymous: true }));
  assert.equal((await fetch(`${api}/payments`, { method: "POST", headers })).status, 403);
  assert.equal((await fetch(`${api}/me`, { headers })).status, 200);
});

test("a log-out ends payments at once", async () => {
  const request = { method: "POST", headers: await authorization(await ask("/user")) };
  const pay = async () => (await fetch(`${api}/payments`, request)).status;
  assert.equal(await pay(), 200);
  await ask("/fail", { request: "POST /introspect" });
  assert.equal(await pay(), 503);
  assert.ok((await fetch(`${service.url}/logout`, request)).ok);
  assert.equal(await pay(), 401);
});
