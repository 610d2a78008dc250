// Random lives of customers at Stripe over HTTP: the tables, the list of what is not handled and the proof of the books agree
// with what was paid for.

import assert from "node:assert/strict";
import {
  arrivals,
  EARLY_PACKS,
  isReversed,
  PACKS,
  PLANS,
  StripeWorld,
} from "../domain/stripe/stripe_world.ts";
import { Random } from "../model/random.ts";
import { rowsOf, sweep } from "./privacy_support.ts";
import { dataOf, driftsOf, serviceOfFile } from "./support.ts";
import { connect, send } from "./stripe_support.ts";

const service = serviceOfFile();
const SEEDS = [1, 44, 105];

Deno.test("every sale is granted whole, or taken back, or in the list: some lives, some messages at once", async () => {
  for (const seed of SEEDS) {
    const random = new Random(seed);
    const world = new StripeWorld(random);
    world.live("ada");
    world.live("bob");
    const app = await service.newApp({ plans: PLANS, packs: EARLY_PACKS });
    await connect(service, app);
    const events = arrivals(random, world.events);
    while (events.length > 0) {
      const some = events.splice(0, random.whole(1, 5));
      await Promise.all(some.map((event) => dataOf(send(service, app, event))));
    }
    await dataOf(service.admin("PUT", `/apps/${app.appId}/catalog`, { plans: PLANS, packs: PACKS }));
    await sweep(service);
    const { unhandled } = await dataOf(service.admin("GET", `/apps/${app.appId}/stripe/unhandled?mode=live`));
    const kept = unhandled.map(({ objectId }: { objectId: string }) => objectId);
    const rows = await rowsOf<{ ref: string; remaining: number }>(
      service,
      `select split_part(external_ref, ':', 1) as ref, sum(remaining)::float8 as remaining
       from credit_balances b join users u on u.key = b.user_key join realms r on r.realm = u.realm
       where r.app_id = $1 group by 1`,
      [app.appId],
    );
    const left = new Map(rows.map(({ ref, remaining }) => [ref, remaining]));
    for (const sale of world.sales) {
      for (const { refs, units } of sale.lines) {
        const found = refs.reduce((sum, ref) => sum + (left.get(ref) ?? 0), 0);
        const isKept = found === 0 && sale.objectIds.some((id) => kept.includes(id));
        const wanted = isReversed(sale) || isKept ? 0 : units;
        assert.equal(found, wanted, `seed ${seed}: ${refs} of ${units}`);
      }
    }
  }
  assert.deepEqual(await driftsOf(service), []);
});
