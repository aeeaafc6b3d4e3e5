// The methods that docs/clients.md lists are those that the types of the client declare.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import ts from "typescript";

const types = fileURLToPath(new URL("node_modules/@supabase/auth-js/dist/module/index.d.ts", import.meta.url));

/** The names of a type's methods, those of its members with methods after a dot. */
function methods(checker, type, prefix = "") {
  return type.getProperties().flatMap((member) => {
    const declaration = member.valueDeclaration ?? member.declarations[0];
    const modifiers = ts.getCombinedModifierFlags(declaration);
    if (member.name.startsWith("_") || modifiers & (ts.ModifierFlags.Private | ts.ModifierFlags.Protected)) return [];
    const of = checker.getTypeOfSymbol(member);
    if (of.getCallSignatures().length) return [prefix + member.name];
    return /Api\b|API\b/i.test(declaration.type?.getText() ?? "") ? methods(checker, of, `${prefix}${member.name}.`) : [];
  });
}

function declared() {
  const program = ts.createProgram([types], { target: ts.ScriptTarget.ES2022, skipLibCheck: true, types: [] });
  const checker = program.getTypeChecker();
  const exported = checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(types)));
  const client = exported.find((each) => each.name === "AuthClient");
  const { prototype } = Object.fromEntries(checker.getTypeOfSymbol(checker.getAliasedSymbol(client)).getProperties().map((each) => [each.name, each]));
  return methods(checker, checker.getTypeOfSymbol(prototype));
}

/** The names in the lists of the section: `auth.mfa` and `enroll` are `mfa.enroll`. */
function documented() {
  const page = readFileSync(new URL("../../../docs/clients.md", import.meta.url), "utf8");
  const section = page.split("## Methods")[1].split("\n## ")[0];
  return [...section.replaceAll("\n  ", " ").matchAll(/^- `auth(?:\.([\w.]+))?`: ([\w, ]+)$/gm)].flatMap(([, group, names]) =>
    names.split(", ").map((name) => (group ? `${group}.${name}` : name)),
  );
}

test("docs/clients.md lists each method of the client once", () => {
  const expected = declared();
  assert.ok(expected.length > 70, String(expected.length));
  assert.deepEqual(documented().sort(), expected.sort());
});
