// null in a catalog: for an optional member it is the same as leaving it out.

import assert from "node:assert/strict";
import { checkCatalog } from "../../src/tenant/catalog/check.ts";

const RULE = { event: "image.*" };
const GROUP = { id: "lg", label: "Images", unit: "count", quota: 10, matches: [RULE] };
const PERIOD = { type: "monthly", anchor: "calendar" };
const PLAN = { id: "plan", name: "Plan", rank: 1, period: PERIOD, limits: [GROUP] };
const PACK = { id: "cpk", name: "Pack", kind: "generic", unit: "cents", matches: [RULE], items: [] };
const MODEL = { id: "m", modality: "text", amountMode: "per_token", inputCentsPerMillionTokens: 1 };

Deno.test("null for an optional member is the same as leaving it out; for any other it is a fault", async () => {
  const group = {
    ...GROUP,
    matches: [{ ...RULE, metadata: null }],
    alerts: null,
    period: null,
    overage: null,
  };
  const sent = {
    models: [{ ...MODEL, aliases: null, outputCentsPerMillionTokens: null }],
    plans: [{
      ...PLAN,
      limits: [group],
      onPlanChange: null,
      archived: null,
      trial: null,
      stripePrices: null,
    }],
    packs: [{ ...PACK, lowAt: null, price: null }],
    ...{ settings: null, composeTypes: null, rates: null },
  };
  const plain = { models: [MODEL], plans: [PLAN], packs: [PACK] };
  assert.deepEqual(await checkCatalog(sent, null), await checkCatalog(plain, null));
  const wrong = { plans: [{ ...PLAN, rank: null, features: { sso: null } }, null] };
  const checked = await checkCatalog(wrong, null);
  const paths = "faults" in checked ? checked.faults.map(({ path }) => path) : [];
  assert.deepEqual(paths, ["plans[0].rank", "plans[0].features.sso", "plans[1]"]);
});
