// Ids that name their owner.

import assert from "node:assert/strict";
import { ownedId, ownerOf } from "../../../src/domain/values/ids.ts";

Deno.test("an owned id names its owner, and nothing else does", () => {
  const unique = "0".repeat(20);
  for (const owner of [1, 35, 36, 1_000_000, Number.MAX_SAFE_INTEGER]) {
    assert.equal(ownerOf("reservation", ownedId("reservation", owner, unique)), owner);
    assert.equal(ownerOf("creditBalance", ownedId("reservation", owner, unique)), null, "of another kind");
  }
  const id = ownedId("reservation", 71, unique);
  const none = [
    "",
    "x",
    "rsv_",
    "rsv_1",
    `${id}0`,
    id.slice(0, -1),
    id.toUpperCase(),
    ` ${id}`,
    `rsv_0_${unique}`,
  ];
  none.push(`rsv_zzzzzzzzzzz_${unique}`, `rsv_zzzzzzzzzzzz_${unique}`, `evt_1z_${unique}`, `rsv_é_${unique}`);
  for (const text of none) assert.equal(ownerOf("reservation", text), null, text);
});
