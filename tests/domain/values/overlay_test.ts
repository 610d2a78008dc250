// The overlay of rows by key, with few rows and with many.

import assert from "node:assert/strict";
import { over, type Overlay } from "../../../src/domain/values/overlay.ts";

Deno.test("an overlay has each key's last row, in the order in which the keys came, however many there are", () => {
  for (const count of [1, 8, 9, 100]) {
    let overlay: Overlay<number> | null = null;
    const keys = Array.from({ length: count }, (_, place) => `k${place}`);
    for (const round of [0, 1_000]) {
      for (const [place, key] of keys.entries()) overlay = over(overlay, key, place + round);
    }
    assert.ok(overlay !== null);
    assert.deepEqual(overlay.keys, keys);
    assert.deepEqual(overlay.rows, keys.map((_, place) => place + 1_000));
    assert.deepEqual(keys.map((key) => overlay.get(key)), overlay.rows);
    assert.equal(overlay.get("none"), undefined);
  }
});
