// Parents: no circle, no path longer than eight users, and limits that stay exactly as long as the parent.

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { planOf, Scene } from "../scene.ts";

/** Users of one realm, by their place. */
function usersOf(count: number, isCompared = true): Scene[] {
  const first = new Scene([planOf("p", { g: 9 })], undefined, [], { id: "u0", key: 1, isCompared });
  const others = Array.from({ length: count - 1 }, (_, place) => {
    return new Scene([], undefined, [], { beside: first, id: `u${place + 1}`, key: place + 2 });
  });
  return [first, ...others];
}

Deno.test("a user is put under any other but itself and those below it", () => {
  const [a, b, c] = usersOf(3) as [Scene, Scene, Scene];
  assert.equal(a.under(a), "parent_cycle");
  assert.equal(b.under(a), "ok");
  assert.equal(c.under(b), "ok");
  assert.equal(a.under(b), "parent_cycle");
  assert.equal(a.under(c), "parent_cycle");
  assert.equal(c.under(a), "ok");
  assert.equal(b.under(c), "ok");
  assert.deepEqual(b.ask("user", {}).path, ["u1", "u2", "u0"]);
});

Deno.test("ids that nobody used become users on both sides, and the same again changes nothing", () => {
  const [a, b] = usersOf(2) as [Scene, Scene];
  assert.deepEqual([a.state.recorded, b.state.recorded], [false, false]);
  a.under(b);
  assert.deepEqual([a.state.recorded, b.state.recorded], [true, true]);
  const before = [a, b].map(({ changes }) => changes.length);
  assert.equal(a.under(b), "ok");
  assert.deepEqual([a, b].map(({ changes }) => changes.length), before);
  assert.deepEqual([a.operations, b.operations], [0, 0]);
});

Deno.test("a path has at most eight users, counted from the top to the lowest user below", () => {
  const users = usersOf(10);
  for (let place = 1; place < 8; place++) assert.equal(users[place]?.under(users[place - 1] as Scene), "ok");
  assert.equal(users[8]?.under(users[7] as Scene), "path_too_long");
  assert.equal(users[0]?.under(users[9] as Scene), "path_too_long");
  assert.equal(users[8]?.under(users[6] as Scene), "ok");
  // Two of four fit, and the fifth does not.
  assert.equal(users[4]?.under(null), "ok");
  assert.equal(users[9]?.under(users[3] as Scene), "ok");
  assert.equal(users[4]?.under(users[9] as Scene), "path_too_long");
  assert.equal(users[4]?.under(users[3] as Scene), "ok");
});

Deno.test("limits stay under the same parent, and go with it", () => {
  const [a, b, c, d] = usersOf(4) as [Scene, Scene, Scene, Scene];
  const limits = () => a.state.user.memberLimits;
  assert.equal(a.under(null, { g: 1 }), "invalid_request");
  assert.equal(a.under(null, {}), "ok");
  assert.equal(a.under(b, { g: 1 }), "ok");
  assert.deepEqual(limits(), { g: 1_000_000n });
  a.under(b);
  assert.deepEqual(limits(), { g: 1_000_000n });
  // The parent becomes an alias: that is still the same parent.
  b.mergeInto(d);
  a.under(d);
  assert.deepEqual(limits(), { g: 1_000_000n });
  a.under(d, { g: 2, h: 0.5 });
  assert.deepEqual(limits(), { g: 2_000_000n, h: 500_000n });
  for (const cleared of [null, {}]) {
    a.under(d, { g: 2 });
    a.under(d, cleared);
    assert.equal(limits(), null);
  }
  a.under(d, { g: 2 });
  a.under(c);
  assert.equal(limits(), null);
  a.under(d, { g: 3 });
  assert.deepEqual(limits(), { g: 3_000_000n });
  a.under(null);
  assert.equal(limits(), null);
});

Deno.test("no sequence of changes makes a circle or a path of more than eight users", () => {
  const place = fc.nat(11);
  const change = fc.record({ user: place, parent: fc.option(place, { freq: 8 }) });
  fc.assert(
    fc.property(fc.array(change, { maxLength: 60 }), (changes) => {
      const users = usersOf(12, false);
      const parents = new Map<number, number | null>();
      for (const { user, parent } of changes) {
        const code = users[user]?.under(parent === null ? null : users[parent] as Scene);
        if (code === "ok") parents.set(user, parent);
        for (let lowest = 0; lowest < users.length; lowest++) {
          let length = 0;
          for (let at: number | null = lowest; at !== null; at = parents.get(at) ?? null) length += 1;
          assert.ok(length <= 8);
        }
      }
    }),
    { numRuns: 60 },
  );
});
