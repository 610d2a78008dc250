// Schemas of model answers that are compiled one after the other: what one of them says holds for it alone.

import assert from "node:assert/strict";
import { outputReaderOf, schemaFault } from "../../src/process/json_schema.ts";

const ID = "https://schemas.test/answer";
const DRAFT = "https://json-schema.org/draft/2020-12/schema";

Deno.test("schemas with the same id are read each by its own rules, and none refers to another catalog's", () => {
  const schemaOf = (name: string) => ({ $id: ID, type: "object", required: [name] });
  for (const name of ["first", "second", "first"]) {
    const read = outputReaderOf({ outputSchema: schemaOf(name) });
    assert.deepEqual(["first", "second"].filter((one) => read?.(JSON.stringify({ [one]: 1 }))), [name]);
  }
  assert.match(String(schemaFault({ $ref: ID })), /can't resolve reference/);
});

Deno.test("each schema is checked against its own draft, which it may refer to and not replace", () => {
  const list = { properties: { pair: { items: [{ type: "string" }] } } };
  assert.equal(schemaFault({ $schema: "http://json-schema.org/draft-07/schema#", ...list }), null);
  assert.match(String(schemaFault(list)), /items must be object,boolean/);
  assert.equal(schemaFault({ properties: { schema: { $ref: DRAFT } } }), null);
  assert.match(String(schemaFault({ $id: DRAFT, type: "object" })), /already exists/);
  assert.match(String(schemaFault({ type: "thing" })), /type must be equal to one of the allowed values/);
});
