// Which node should own each cell, and which one does: every node gets the same result, and few cells move.

import assert from "node:assert/strict";
import { CELLS } from "../../actors/doors.ts";
import { Owners } from "../../src/cluster/owners.ts";
import { wantedOwners } from "../../src/cluster/rendezvous.ts";

Deno.test("every node computes the same owners, in whatever order it lists the nodes", () => {
  const owners = wantedOwners([3, 17, 4]);
  for (const order of [[4, 3, 17], [17, 4, 3], [4, 17, 3]]) assert.deepEqual(wantedOwners(order), owners);
  assert.equal(owners.length, CELLS);
  assert.deepEqual(wantedOwners([]), Array.from({ length: CELLS }, () => null));
  assert.deepEqual(new Set(wantedOwners([9])), new Set([9]));
});

Deno.test("a node that joins gets cells from all, and no cell moves between the others; likewise when it leaves", () => {
  for (let term = 1; term < 200; term++) {
    const before = wantedOwners([term, term + 1, term + 2]);
    const after = wantedOwners([term, term + 1, term + 2, term + 3]);
    for (let cell = 0; cell < CELLS; cell++) {
      if (after[cell] !== term + 3) assert.equal(after[cell], before[cell]);
    }
  }
});

Deno.test("nodes with neighbouring terms share the cells, and each gets a fair number", () => {
  let least = CELLS;
  for (let term = 1; term < 500; term++) {
    const owners = wantedOwners([term, term + 1, term + 2]);
    for (const node of [term, term + 1, term + 2]) {
      least = Math.min(least, owners.filter((owner) => owner === node).length);
    }
  }
  // A third is 21; by chance alone a share of 64 throws falls below 6 about once in a hundred thousand times.
  assert.ok(least >= 6, `one node of three would have ${least} of ${CELLS} cells`);
});

Deno.test("the known owner of a cell is kept until another one is known, or the owner is gone", () => {
  const owners = new Owners();
  owners.set([1, 2], 5);
  owners.set([2], 6);
  owners.set([3], 5);
  assert.deepEqual([0, 1, 2, 3].map((cell) => owners.of(cell)), [null, 5, 6, 5]);
  owners.forget(5);
  assert.deepEqual([0, 1, 2, 3].map((cell) => owners.of(cell)), [null, null, 6, null]);
  assert.deepEqual(owners.all.filter((term) => term !== null), [6]);
});
