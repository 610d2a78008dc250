// The rate card of a catalog: what a strict check refuses, and plans with credits that could never pay.

import assert from "node:assert/strict";
import type { CatalogDocument } from "../../src/domain/catalog/catalog.ts";
import { diffCatalogs } from "../../src/tenant/catalog/changes.ts";
import { checkCatalog } from "../../src/tenant/catalog/check.ts";

async function faultsOf(document: object): Promise<string[]> {
  const checked = await checkCatalog(document, null);
  return "faults" in checked ? checked.faults.map(({ path, message }) => `${path}: ${message}`) : [];
}

Deno.test("a rate names an event and what a call costs", async () => {
  const parts =
    "perCall, perImage, perMillionInputTokens, perMillionCachedInputTokens, perMillionOutputTokens, " +
    "perSecond, perCent, minimum";
  const rows: [rate: object, expected: string[]][] = [
    [{ event: "image.*", metadata: { size: "large" }, perImage: 5 }, []],
    [{ event: "*", perCent: 0, minimum: 0.000001 }, []],
    [{ event: "*", minimum: 1 }, []],
    [{ event: "*" }, [`rates[0]: must have one of ${parts}`]],
    [{ event: "*", perCall: 1, perImage: 1 }, ["rates[0].perImage: excludes perCall: remove one of them"]],
    [{ event: "*", perCall: -1 }, ["rates[0].perCall: must be at least 0"]],
    [{ event: "a*b", perCall: 1 }, [
      'rates[0].event: must be an event name, a prefix followed by one final "*", or "*"',
    ]],
    [{ perCall: 1 }, ["rates[0].event: is required"]],
    [{ event: "*", perTokens: 1, perCall: 1 }, ["rates[0].perTokens: is not a known member"]],
  ];
  for (const [rate, expected] of rows) {
    const faults = await faultsOf({ rates: [rate] });
    assert.deepEqual(
      faults.map((fault) => fault.replace(/: is .*known.*/, ": is not a known member")),
      expected,
    );
  }
});

const GROUP = { id: "g", label: "G", unit: "count", quota: 1, matches: [{ event: "image.*" }] };
const PERIOD = { type: "monthly", anchor: "calendar" };

Deno.test("credits that a plan includes need a group in credits where other groups count", async () => {
  const path = "plans[0].includes[0].packId";
  const catalog = (limits: object[], pack: object) => ({
    plans: [{ id: "p", name: "P", rank: 1, period: PERIOD, limits, includes: [{ packId: "c" }] }],
    packs: [{ id: "c", name: "C", kind: "generic", items: [], ...pack }],
  });
  const inCredits = { unit: "credits", matches: [{ event: "*" }] };
  const item = { id: "i", label: "I", amount: 5, ...inCredits };
  const large = (size: string) => [{ event: "*", metadata: { size } }];
  const rows: [limits: object[], pack: object, isFault: boolean][] = [
    [[GROUP], inCredits, true],
    [[GROUP], { items: [item] }, true],
    [[GROUP], { ...inCredits, unit: "count" }, false],
    [[], inCredits, false],
    [[{ ...GROUP, matches: [{ event: "chat" }] }], { ...inCredits, matches: [{ event: "image" }] }, false],
    [[GROUP, { ...GROUP, id: "c", unit: "credits", quota: 0 }], inCredits, false],
    [[{ ...GROUP, period: { type: "concurrent" } }], inCredits, false],
    [[{ ...GROUP, matches: large("small") }], { ...inCredits, matches: large("large") }, false],
    [[{ ...GROUP, matches: large("large") }], { ...inCredits, matches: large("large") }, true],
  ];
  for (const [limits, pack, isFault] of rows) {
    const faults = (await faultsOf(catalog(limits, pack))).filter((fault) => fault.startsWith(path));
    assert.equal(faults.length, isFault ? 1 : 0, JSON.stringify([limits, pack]));
    if (isFault) assert.match(faults[0] ?? "", /quota 0 lets balances alone pay/);
  }
});

Deno.test("a change of the rate card is one difference", () => {
  const before: CatalogDocument = { rates: [{ event: "*", perCall: 1 }] };
  const after: CatalogDocument = { rates: [{ event: "*", perCall: 2 }] };
  assert.deepEqual(diffCatalogs(before, after), [{ path: "rates", id: "rates", change: "changed" }]);
});
