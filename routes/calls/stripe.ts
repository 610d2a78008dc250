// Stripe: the address that it sends its messages to, and the admin API of the secret that signs them. beyond.md, section 7.

import { z } from "zod";
import type { Mode } from "../../actors/port.ts";
import { readMessage } from "../../src/domain/stripe/message.ts";
import { type Done, receive, type StripeWorld } from "../../src/integrations/stripe/receive.ts";
import { eventOf } from "../../src/integrations/stripe/signature.ts";
import type { App, Registry } from "../../src/tenant/registry.ts";
import {
  readStripeStatus,
  removeStripeSecret,
  setStripeSecret,
  type StripeAdminWorld,
  type StripeStatus,
} from "../../src/integrations/stripe/settings.ts";
import { aboutApp, appOf, appPath } from "./admin.ts";
import { success } from "../http/answer.ts";
import { keylessEndpointsOn } from "../http/endpoint.ts";
import type { KeylessEndpoint } from "../http/endpoint_types.ts";
import { Refused } from "../http/errors.ts";
import { nothing } from "../contract/schemas/answers.ts";
import { timeText, timeTextOrNull } from "../contract/schemas/fields.ts";
import { mode, receivedAnswer, stripeAnswer, stripeSecret } from "../contract/schemas/stripe.ts";

type World = StripeWorld & StripeAdminWorld & {
  readonly registry: Registry;
  readonly database: Parameters<typeof readStripeStatus>[0];
};

const endpoint = keylessEndpointsOn<World>();

/** `POST /stripe/{appId}/{mode}`: a message of Stripe. */
const message = endpoint({
  method: "POST",
  access: "open",
  path: "/v1/stripe/:appId/:mode",
  input: z.object({ ...appPath, mode: z.string(), payload: z.string(), signature: z.string() }),
  signedBody: { text: "payload", signature: "signature", header: "Stripe-Signature" },
  misfit: strange,
  about: aboutApp,
  doc: {
    id: "receiveStripeMessage",
    tag: "Stripe",
    summary: "Take a message of Stripe",
    description:
      "The address of an endpoint in Stripe. The header Stripe-Signature lets a message in, and there is no " +
      "key. The answer tells what was done, or why nothing was; any message twice changes nothing. A 503 asks " +
      "Stripe to send it again.",
    answer: receivedAnswer,
    errors: ["invalid_key", "payload_too_large"],
  },
  handle: async ({ world, input: { appId, mode, payload, signature } }) => {
    const app = world.registry.apps.get(appId);
    const connection = app?.stripe.get(mode as Mode);
    if (app === undefined || connection === undefined) throw strange();
    const event = await eventOf(payload, signature, connection.webhookSecret, world.clock.now());
    if (event === null) throw strange();
    const read = readMessage(event);
    if (read === null) return success({ handled: false, reason: "the message is no event" });
    const received = await receive(world, app.realms[connection.mode], read);
    return success(received.handled ? { ...received, done: received.done.map(showDone) } : received);
  },
});

/** One refusal for an unknown app, a mode without a secret and a bad signature: a stranger learns nothing of either. */
function strange(): Refused {
  return new Refused("invalid_key", "The signature is not of this address, or is too old");
}

function showDone(done: Done) {
  return "endsAt" in done ? { ...done, endsAt: timeTextOrNull(done.endsAt) } : done;
}

const set = endpoint({
  method: "PUT",
  access: "admin",
  path: "/admin/v1/apps/:appId/stripe",
  input: z.object({ ...appPath, mode, webhookSecret: stripeSecret }),
  about: aboutApp,
  doc: {
    id: "setStripe",
    tag: "Stripe",
    summary: "Set the secret of Stripe's messages",
    description:
      "The signing secret of the endpoint that was made in Stripe for this mode. It is never shown again, and " +
      "another one replaces it at once.",
    answer: stripeAnswer,
    errors: ["not_found"],
  },
  handle: async ({ world, input }) => {
    const app = appOf(world, input.appId);
    await setStripeSecret(world, app, input.mode, input.webhookSecret);
    return success(await show(world, app));
  },
});

const get = endpoint({
  method: "GET",
  access: "admin",
  path: "/admin/v1/apps/:appId/stripe",
  input: z.object(appPath),
  about: aboutApp,
  doc: {
    id: "getStripe",
    tag: "Stripe",
    summary: "Whether Stripe is set up for an app, and what came last",
    answer: stripeAnswer,
    errors: ["not_found"],
  },
  handle: async ({ world, input }) => success(await show(world, appOf(world, input.appId))),
});

const remove = endpoint({
  method: "DELETE",
  access: "admin",
  path: "/admin/v1/apps/:appId/stripe",
  input: z.object({ ...appPath, mode }),
  about: aboutApp,
  doc: {
    id: "deleteStripe",
    tag: "Stripe",
    summary: "Take no more messages of Stripe",
    description: "What they did stays. Messages of this mode are refused from then on.",
    answer: nothing,
    errors: ["not_found"],
  },
  handle: async ({ world, input }) => {
    const removed = await removeStripeSecret(world, appOf(world, input.appId), input.mode);
    return removed.ok ? success({}) : { ok: false, error: removed.refusal };
  },
});

/** Stripe's messages and their secrets. */
export const STRIPE: readonly KeylessEndpoint<World>[] = [message, set, get, remove];

async function show({ database }: World, app: App) {
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
