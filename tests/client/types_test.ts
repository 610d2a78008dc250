// The client's generated types are those of the API's document, and every example compiles against them. The examples
// are compiled as one module that exists only as text.

import assert from "node:assert/strict";
import { STATUS } from "../../routes/http/errors.ts";
import { clientTypes, pythonTypes } from "../../src/cli/client_types.ts";
import { faultsOf } from "./compiler.ts";
import { moduleOf, readExamples } from "./examples.ts";

Deno.test("the clients' types are what `deno task client:types` writes", async () => {
  const read = (path: string) => Deno.readTextFile(new URL(`../../src/${path}`, import.meta.url));
  assert.equal(await read("client/wire_types.ts"), clientTypes());
  assert.equal(await read("clients/python/holdfast/types.py"), pythonTypes());
});

Deno.test("every example compiles", async () => {
  assert.deepEqual(faultsOf(moduleOf(await readExamples(), "../../src/client/client.ts")), []);
});

Deno.test("the README's table has every error code of the service with its status", async () => {
  const readme = await Deno.readTextFile(new URL("../../src/client/README.md", import.meta.url));
  const rows = [...readme.matchAll(/^\| (`[\w`, ]+`) +\| ([\d, ]+?) +\|/gm)];
  const missing = Object.entries(STATUS).filter(([code, status]) =>
    code !== "not_processed" &&
    !rows.some(([, codes = "", statuses = ""]) =>
      codes.includes(`\`${code}\``) && statuses.includes(String(status))
    )
  );
  assert.deepEqual(missing, []);
});
