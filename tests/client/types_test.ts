// The client's generated types are those of the API's document, and every example compiles against them. The examples
// are compiled as one module that exists only as text. The tables of the README are complete.

import assert from "node:assert/strict";
import { STATUS } from "../../routes/http/errors.ts";
import { clientTypes, pythonTypes } from "../../src/cli/client_types.ts";
import { createClient } from "../../src/client/client.ts";
import { faultsOf } from "./compiler.ts";
import { moduleOf, readExamples } from "./examples.ts";

const README = new URL("../../src/client/README.md", import.meta.url);

Deno.test("the clients' types are what `deno task client:types` writes", async () => {
  const read = (path: string) => Deno.readTextFile(new URL(`../../src/${path}`, import.meta.url));
  assert.equal(await read("client/wire_types.ts"), clientTypes());
  assert.equal(await read("clients/python/holdfast/types.py"), pythonTypes());
});

Deno.test("every example compiles", async () => {
  assert.deepEqual(faultsOf(moduleOf(await readExamples(), "../../src/client/client.ts")), []);
});

Deno.test("the README's table has every error code of the service with its status", async () => {
  const readme = await Deno.readTextFile(README);
  const rows = [...readme.matchAll(/^\| (`[\w`, ]+`) +\| ([\d, ]+?) +\|/gm)];
  const missing = Object.entries(STATUS).filter(([code, status]) =>
    code !== "not_processed" &&
    !rows.some(([, codes = "", statuses = ""]) =>
      codes.includes(`\`${code}\``) && statuses.includes(String(status))
    )
  );
  assert.deepEqual(missing, []);
});

Deno.test("the README's table names every call of the client", async () => {
  const rows = (await Deno.readTextFile(README)).split("\n").filter((line) => line.startsWith("| `"));
  const client = createClient({ apiKey: "sk_live_x", baseUrl: "http://127.0.0.1:1" });
  const calls = callsOf(client);
  assert.ok(calls.length > 50, calls.join());
  const isNamed = (call: string) => {
    const [name = "", group] = call.split(".").toReversed();
    return rows.some((row) =>
      group === undefined
        ? row.includes(`\`${name}(`)
        : row.includes(`\`${group}.`) && row.includes(`.${name}(`)
    );
  };
  assert.deepEqual(calls.filter((call) => !isNamed(call)), []);
});

/** The calls of a client, or of one of its groups, by their names. */
function callsOf(owner: object, prefix = ""): string[] {
  const names = new Set([...Object.keys(owner), ...Object.getOwnPropertyNames(Object.getPrototypeOf(owner))]);
  return [...names].filter((name) => name !== "constructor").flatMap((name) => {
    const member: unknown = (owner as Record<string, unknown>)[name];
    if (typeof member === "function") {
      return [prefix + name, ...Object.keys(member).map((inner) => `${name}.${inner}`)];
    }
    return typeof member === "object" && member !== null ? callsOf(member, `${name}.`) : [];
  });
}
