// The cell of a workspace never changes: members of any version, and the tables, count by it.

import assert from "node:assert/strict";
import { CELLS } from "../../actors/doors.ts";
import { cellOf } from "../../src/tenant/cell_of.ts";

Deno.test("workspaces are in the cells in which they were when there were first cells", () => {
  const cells = { ws_a: 17, ws_demo: 41, wsp_01k81apqpi: 37, "": 2 };
  for (const [workspaceId, cell] of Object.entries(cells)) {
    assert.equal(cellOf(workspaceId), cell, workspaceId);
  }
  assert.equal(CELLS, 64);
});
