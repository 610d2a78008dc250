// Stripe's messages to any node, including a front, while cells move: each is handled once, and a message that could not be
// handled is requested again. On a server only.

import assert from "node:assert/strict";
import {
  connect,
  eventOf,
  send,
  sessionOf,
  STRIPE_CATALOG,
  subscriptionOf,
} from "../routes/stripe_support.ts";
import { testServerUrl } from "../support/test_store.ts";
import { Nodes, type TestMember } from "./support.ts";

const ignore = testServerUrl() === null;
const USERS = 6;
const CHANGES = 3;

Deno.test({
  name: "messages of Stripe through every node, each many times while cells move, are handled once",
  ignore,
  fn: async () => {
    await using nodes = await Nodes.open({ nodes: 2, fronts: 1 });
    const pick = () => nodes.all[Math.floor(Math.random() * nodes.all.length)] as TestMember;
    const service = nodes.asService(pick);
    const app = await service.newApp(STRIPE_CATALOG);
    await connect(service, app);
    const events = Array.from({ length: USERS }, (_, no) => {
      const metadata = { holdfast_user: `user_${no}`, holdfast_pack: "cpk_images" };
      const payment = `pi_${no}`;
      return [
        eventOf("customer.subscription.created", subscriptionOf({ id: `sub_${no}`, metadata })),
        eventOf(
          "customer.subscription.updated",
          subscriptionOf({ id: `sub_${no}`, metadata }, "price_pro"),
          1,
        ),
        eventOf(
          "checkout.session.completed",
          sessionOf({ id: `cs_${no}`, metadata, payment_intent: payment }),
        ),
        ...no % 2 === 0
          ? [eventOf("charge.refunded", { id: `ch_${no}`, payment_intent: payment, refunded: true })]
          : [],
      ];
    }).flat();
    let isOver = false;
    let sent = 0;
    const sender = async (start: number) => {
      for (let place = start; !isOver || place < start + events.length; place++) {
        const event = events[place % events.length] as object;
        // Like Stripe: again until it is accepted.
        for (let status = 0; status !== 200; sent++) {
          status = (await send(service, app, event)).status;
          assert.ok(status === 200 || status === 503, `${status}`);
        }
      }
    };
    const sending = Promise.all([0, 5, 11, 17].map(sender));
    sending.catch(() => isOver = true);
    for (let change = 0; change < CHANGES && !isOver; change++) {
      await nodes.join(change === 1 ? 0 : 1);
      await nodes.settled();
      await nodes.leave(nodes.all[0] as TestMember);
    }
    isOver = true;
    await sending;
    assert.ok(sent > events.length);
    for (const { serving } of nodes.all) await serving.term.flush();
    const { database } = nodes.store;
    const count = async (text: string) =>
      (await database.query<{ found: string }>(text)).map(({ found }) => found);
    assert.deepEqual(
      await count("select plan_id || ' ' || count(*) as found from subscriptions group by plan_id"),
      [`plan_pro ${USERS}`],
    );
    assert.deepEqual(
      await count(
        "select type as found from subscription_events group by user_key, type having count(*) > 1",
      ),
      [],
    );
    assert.deepEqual(
      await count(
        "select (revoked_at_ms is not null) || ' ' || count(*) as found from credit_balances group by revoked_at_ms is not null order by 1",
      ),
      [`false ${USERS}`, `true ${USERS}`],
    );
    assert.deepEqual(
      await count(
        "select delta || ' ' || count(*) as found from credit_ledger group by delta order by delta",
      ),
      ["-10 3", "-2 3", `2 ${USERS}`, `10 ${USERS}`],
    );
  },
});
