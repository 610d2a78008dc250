// Statements of Stripe that the service makes whether or not anybody uses Stripe. Nobody does in a simulated world, so they
// find nothing.

import type { Statement } from "./statements.ts";

type Entry = readonly [start: string, statement: Statement];

const NOTHING_REMOVED: Statement = { kind: "write", make: () => () => [] };

export const STRIPE: readonly Entry[] = [
  [
    'select app_id as "appId", mode, webhook_secret as "webhookSecret"',
    { kind: "read", run: () => [] },
  ],
  ["with gone as ( delete from stripe_purchases", NOTHING_REMOVED],
  ["update stripe_subscriptions set left_user_ids = (", NOTHING_REMOVED],
  ["delete from stripe_subscriptions where realm", NOTHING_REMOVED],
  ["delete from stripe_refunds where realm", NOTHING_REMOVED],
  ["delete from stripe_payments where realm", NOTHING_REMOVED],
];
