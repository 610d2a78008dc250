// What the gateway allows: the settings of a document, those of an older form, and without any; which models may be called.

import assert from "node:assert/strict";
import { allowsModel, compileGateway } from "../../../src/domain/catalog/gateway.ts";
import { compileCatalog } from "../../../src/domain/catalog/catalog.ts";
import { amountOf } from "../../../src/domain/values/amount.ts";

const REFUSING = {
  models: null,
  allowTestMode: false,
  allowStoredObjects: false,
  allowServerTools: false,
  budgetCents: null,
  upstreams: [],
};

Deno.test("settings are those of the document, else of its older form, else refuse tools of the server alone", () => {
  const cases: [Parameters<typeof compileGateway>, object][] = [
    [[{}, undefined], REFUSING],
    [[{ budgetCents: 5, models: ["a*"] }, { testMode: true }], {
      ...REFUSING,
      budgetCents: amountOf(5),
      models: ["a*"],
    }],
    [[undefined, { testMode: true, storedObjects: true, models: ["a"] }], {
      ...REFUSING,
      allowTestMode: true,
      allowStoredObjects: true,
      models: ["a"],
    }],
    [[undefined, {}], REFUSING],
    [[undefined, undefined], { ...REFUSING, allowTestMode: true, allowStoredObjects: true }],
  ];
  for (const [[newer, older], settings] of cases) {
    assert.deepEqual(compileGateway(newer, older), settings, JSON.stringify([newer, older]));
  }
});

Deno.test("a model may be called by a name that a pattern covers, or by each name of an allowed price row", () => {
  const models = [{
    id: "small-1",
    modality: "text",
    amountMode: "per_token",
    aliases: ["small-*", "tiny"],
  }] as const;
  const allows = (patterns: string[] | undefined, name: string) =>
    allowsModel(
      compileCatalog({ models, gateway: patterns === undefined ? {} : { models: patterns } }, 1),
      name,
    );
  assert.deepEqual(["small-1", "tiny", "other"].map((name) => allows(["small-1"], name)), [
    true,
    true,
    false,
  ]);
  assert.deepEqual(["small-9", "tiny", "other"].map((name) => allows(["o*"], name)), [false, false, true]);
  assert.deepEqual([allows([], "small-1"), allows(undefined, "anything")], [false, true]);
});
