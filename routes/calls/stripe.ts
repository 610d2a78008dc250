// Stripe: its messages, and the secret that signs them.

import type { Mode } from "../../actors/port.ts";
import type { Term } from "../../actors/term.ts";
import { readMessage } from "../../src/domain/stripe/message.ts";
import { type Done, receive, type Received } from "../../src/integrations/stripe/receive.ts";
import {
  retryOne,
  type RetryWorld,
  stripeOfUser,
  unhandledOf,
} from "../../src/integrations/stripe/unhandled.ts";
import { eventOf } from "../../src/integrations/stripe/signature.ts";
import type { TopUps } from "../../src/integrations/stripe/top_ups.ts";
import type { App, Registry } from "../../src/tenant/registry.ts";
import {
  readStripeStatus,
  removeStripeSecret,
  setStripeSecret,
  type StripeAdminWorld,
  type StripeStatus,
} from "../../src/integrations/stripe/settings.ts";
import { appOf } from "./admin.ts";
import { failure, success } from "../http/answer.ts";
import { keylessEndpointsOn } from "../http/endpoint.ts";
import type { KeylessEndpoint } from "../http/endpoint_types.ts";
import type { DataOf } from "../contract/definition.ts";
import * as contract from "../contract/stripe.ts";
import { Refused } from "../http/errors.ts";
import { timeText, timeTextOrNull } from "../contract/fields.ts";

type World = RetryWorld & StripeAdminWorld & {
  readonly registry: Registry;
  readonly topUps: Pick<TopUps, "note">;
  readonly term: Pick<Term, "flush">;
};

const endpoint = keylessEndpointsOn<World>();

/** One refusal for an unknown app, a mode without a secret and a bad signature, so that a stranger learns nothing. */
function strange(): Refused {
  return new Refused(
    "invalid_key",
    "Invalid or expired Stripe signature; set this endpoint's signing secret by " +
      "PUT /api/admin/v1/apps/{appId}/stripe, or in the console under Stripe",
  );
}

function showReceived(received: Received) {
  return received.handled ? { ...received, done: received.done.map(showDone) } : received;
}

function showDone(done: Done) {
  return "endsAt" in done ? { ...done, endsAt: timeTextOrNull(done.endsAt) } : done;
}

/** Stripe's messages, and the secrets that sign them. */
export const STRIPE: readonly KeylessEndpoint<World>[] = [
  endpoint(contract.receiveStripeMessage, async ({ world, input: { appId, mode, payload, signature } }) => {
    const app = world.registry.apps.get(appId);
    const connection = app?.stripe.get(mode as Mode);
    if (app === undefined || connection === undefined) throw strange();
    const event = await eventOf(payload, signature, connection.webhookSecret, world.clock.now());
    if (event === null) throw strange();
    const read = readMessage(event);
    if (read === null) return success({ handled: false, reason: "the message is not an event" });
    const realm = app.realms[connection.mode];
    const received = await receive(world, realm, read);
    if (read.kind === "topUp") world.topUps.note([{ id: read.topUpId, realm: realm.realm, status: "open" }]);
    return success(showReceived(received));
  }, {
    misfit: strange,
    admits: ({ registry }, { appId = "", mode }) =>
      registry.apps.get(appId)?.stripe.has(mode as Mode) === true,
  }),
  endpoint(contract.setStripe, async ({ world, input }) => {
    const app = appOf(world, input.appId);
    await setStripeSecret(world, app, input.mode, input.webhookSecret);
    return success(await show(world, app));
  }),
  endpoint(
    contract.getStripe,
    async ({ world, input }) => success(await show(world, appOf(world, input.appId))),
  ),
  endpoint(contract.deleteStripe, async ({ world, input }) => {
    const removed = await removeStripeSecret(world, appOf(world, input.appId), input.mode);
    return removed.ok ? success({}) : failure(removed.refusal);
  }),
  endpoint(contract.listUnhandledStripe, async ({ world, input: { appId, mode } }) => {
    const rows = await unhandledOf(world.database, appOf(world, appId), mode);
    return success({ unhandled: rows.map((row) => ({ ...row, createdAt: timeText(row.createdAt) })) });
  }),
  endpoint(contract.listUserStripe, async ({ world, input: { appId, userId, mode } }) => {
    await world.term.flush();
    const { payments, subscriptions, unhandled } = await stripeOfUser(
      world.database,
      appOf(world, appId),
      mode,
      userId,
    );
    return success({
      payments: payments.map((row) => ({ ...row, at: timeTextOrNull(row.at) })),
      subscriptions: subscriptions.map((row) => ({ ...row, at: timeText(row.at) })),
      unhandled: unhandled.map((row) => ({ ...row, createdAt: timeText(row.createdAt) })),
    });
  }),
  endpoint(contract.retryUnhandledStripe, async ({ world, input: { appId, eventId } }) => {
    const retried = await retryOne(world, appOf(world, appId), eventId);
    return retried.ok ? success(showReceived(retried.answer)) : failure(retried.refusal);
  }),
];

async function show({ database }: World, app: App): Promise<DataOf<typeof contract.getStripe>> {
  const { live, test } = await readStripeStatus(database, app);
  return { live: showMode(app, "live", live), test: showMode(app, "test", test) };
}

function showMode({ record: { appId } }: App, mode: Mode, { connection, last }: StripeStatus) {
  return {
    isSet: connection !== null,
    setAt: timeTextOrNull(connection?.setAt ?? null),
    path: `/api/v1/stripe/${appId}/${mode}`,
    lastMessage: last === null ? null : { ...last, at: timeText(last.at), handled: last.reason === null },
  };
}
