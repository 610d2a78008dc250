// The JSON of calls equals that of the runtime, and also works for values nested too deeply for the runtime.

import assert from "node:assert/strict";
import { jsonOf } from "../../src/channel/json.ts";

Deno.test("a value is written like by the runtime, and a value too deep for the runtime is written too", () => {
  const odd = JSON.parse(
    '{"b":[],"a":{},"__proto__":{"x":[1,-0.5,"\\u2028é\\ud800",null,true]},"0":[[{}],{"":1}]}',
  );
  for (const value of [odd, "x", 1, null, []]) assert.equal(jsonOf(value), JSON.stringify(value));
  for (const depth of [10_000, 200_000]) {
    const [open, shut] = ['{"a":['.repeat(depth), "]}".repeat(depth)];
    const text = `[${open}${JSON.stringify(odd)}${shut},2]`;
    assert.throws(() => JSON.stringify(JSON.parse(text)), RangeError);
    assert.equal(jsonOf(JSON.parse(text)), text);
    assert.equal(
      jsonOf({ none: undefined, list: [undefined], deep: JSON.parse(text) }),
      `{"list":[null],"deep":${text}}`,
    );
  }
});
