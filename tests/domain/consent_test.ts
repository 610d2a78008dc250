// Consent: what a call adds and removes, and when it leaves an entry. A row a call.

import assert from "node:assert/strict";
import { Scene } from "./scene.ts";

Deno.test("a consent that changes nothing writes nothing; a consent that changes something writes one entry where it is asked for", () => {
  const entry = { distinctId: "u", action: "opt_out", scope: "all" } as const;
  const rows: [
    name: string,
    input: { add?: number; remove?: number; entry?: typeof entry; isErasing?: boolean },
    tables: string[],
    optedOut: number,
  ][] = [
    ["an opting in of an unknown user", { remove: 3, entry }, [], 0],
    ["a first opt-out", { add: 1, entry }, ["consents", "users"], 1],
    ["once more", { add: 1, entry }, [], 1],
    ["one scope more", { add: 3, entry }, ["consents", "users"], 3],
    ["without an entry", { add: 4 }, ["users"], 7],
    ["the mark of an erasure is no consent", { entry, isErasing: true }, ["users"], 7],
    ["put once", { entry, isErasing: true }, [], 7],
    ["an opt-in leaves other scopes", { remove: 3, entry }, ["consents", "users"], 4],
  ];
  const scene = new Scene([]);
  for (const [name, input, tables, optedOut] of rows) {
    const { result, changes } = scene.do("consent", { add: 0, remove: 0, entry: null, ...input });
    assert.deepEqual(changes.map(({ table }) => table).sort(), tables, name);
    assert.equal(
      result.ok && result.answer.hasChanged,
      input.isErasing === undefined && tables.length > 0,
      name,
    );
    assert.equal(scene.state.user.optedOut, optedOut, name);
    for (const { table, row } of changes) {
      if (table !== "consents") continue;
      const { distinctId, action, scope, at, userKey } = row;
      assert.deepEqual(
        { distinctId, action, scope, at, userKey },
        { ...entry, at: scene.now, userKey: 7 },
        name,
      );
    }
  }
  assert.equal(scene.state.user.isErasing, true, "a consent leaves the mark");
});
