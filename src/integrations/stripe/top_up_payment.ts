// Pays one top-up at Stripe. Money moves only by the confirmation of a PaymentIntent with a stored id. So a top-up is paid at
// most once, also if answers are lost, steps are repeated, or two processes work on it:
//
//  - a PaymentIntent is created unconfirmed. Without an answer, the call is repeated with its key, which gives the same
//    one. Stripe forgets keys after a day: then another one is created, and the first takes no money for ever;
//  - its id is stored, durably, before it is confirmed. Once an id is stored, no other one is created;
//  - after a confirmation without an answer, its state is asked for, for as long as it takes;
//  - what is neither paid nor processing is cancelled first, and then failed.

import type { Stripe } from "stripe";
import { isUnderWay, type TopUpIntent } from "../../domain/state/top_up.ts";
import type { TopUpStep } from "../../domain/credits/top_up_work.ts";
import { INTENT } from "../../domain/stripe/message.ts";
import { STRIPE_LIMITS } from "../../process/limits.ts";
import type { StripeApi } from "./stripe_client.ts";

/** What the payment of a top-up uses. */
interface PaymentWorld {
  readonly stripe: StripeApi;
  /** Real time. */
  readonly realNow: () => number;
  /** Makes a step of the intent durable; null where the intent, or its cell, is gone. */
  readonly turn: (step: TopUpStep) => Promise<TopUpIntent | null>;
  /** Handles a payment that was received, as a message of Stripe is handled. */
  readonly receive: (object: Stripe.PaymentIntent) => Promise<void>;
}

/** "settled": nothing is left to do here; "later": to be looked at again. */
type PaymentEnd = "settled" | "later";

/** Steps of one run; a run that needs more goes on later. */
const STEPS_MAX = 10;

/** Goes on with the payment of a top-up, as far as it goes. */
export async function payTopUp(world: PaymentWorld): Promise<PaymentEnd> {
  let intent = await world.turn({ kind: "read" });
  for (let steps = 0; steps < STEPS_MAX; steps++) {
    if (intent === null || !isUnderWay(intent)) return "settled";
    const next = intent.paymentIntentId === null
      ? await create(world, intent)
      : await goOn(world, intent, intent.paymentIntentId);
    if (next === "later") return "later";
    intent = next;
  }
  return "later";
}

type Next = TopUpIntent | null | "later";

async function create({ stripe, realNow, turn }: PaymentWorld, before: TopUpIntent): Promise<Next> {
  const { attemptedAt, attempt: last } = before;
  const isForgotten = attemptedAt !== null && realNow() - attemptedAt >= STRIPE_LIMITS.keyValidMs;
  const intent = await turn({ kind: "attempt", realNow: realNow(), over: isForgotten ? last : null });
  if (intent === null || !isUnderWay(intent) || intent.paymentIntentId !== null) return intent;
  const { id, amount, currency, customerId, paymentMethodId, attempt } = intent;
  const answer = await asked(() =>
    stripe.paymentIntents.create({
      ...{ amount, currency },
      customer: customerId,
      payment_method: paymentMethodId,
      allowed_payment_method_types: ["card"],
      confirm: false,
      metadata: { [INTENT]: id },
    }, { idempotencyKey: `${id}:${attempt}` })
  );
  if (answer.kind === "unknown") {
    // Stripe repeats this failure for as long as it knows the key.
    if (answer.isRepeated) await turn({ kind: "attempt", realNow: realNow(), over: attempt });
    return "later";
  }
  return answer.kind === "refused"
    ? await turn({ kind: "ended", paymentIntentId: null, reason: answer.reason })
    : await turn({ kind: "created", paymentIntentId: answer.object.id });
}

async function goOn(world: PaymentWorld, intent: TopUpIntent, id: string): Promise<Next> {
  const { stripe, turn } = world;
  if (intent.isCalledOff) return await cancel(world, id, "");
  if (!intent.isConfirmed) {
    const now = await turn({ kind: "confirming" });
    // It may have been called off, or another process may have gone on.
    if (now === null || !isUnderWay(now) || !now.isConfirmed || now.paymentIntentId !== id) return now;
    return await confirm(world, id);
  }
  const answer = await asked(() => stripe.paymentIntents.retrieve(id));
  if (answer.kind !== "known") return "later";
  return answer.object.status === "requires_confirmation"
    ? await confirm(world, id)
    : await settle(world, answer.object);
}

async function confirm(world: PaymentWorld, id: string): Promise<Next> {
  const answer = await asked(() => world.stripe.paymentIntents.confirm(id, { off_session: true }));
  if (answer.kind === "known") return await settle(world, answer.object);
  if (answer.kind === "unknown") return "later";
  return await cancel(world, id, answer.reason);
}

/** Settles a PaymentIntent after an attempt to pay it. */
async function settle(world: PaymentWorld, object: Stripe.PaymentIntent): Promise<Next> {
  const { turn } = world;
  switch (object.status) {
    case "succeeded": {
      await world.receive(object);
      const intent = await turn({ kind: "read" });
      return intent !== null && isUnderWay(intent) ? "later" : intent;
    }
    case "processing":
      await turn({ kind: "processing" });
      return "later";
    case "canceled":
      return await turn({ kind: "ended", paymentIntentId: object.id, reason: reasonOf(object) });
    default:
      return await cancel(world, object.id, reasonOf(object));
  }
}

/** Cancels a PaymentIntent; what cannot be cancelled is asked for its state. */
async function cancel(world: PaymentWorld, id: string, reason: string): Promise<Next> {
  const { stripe, turn } = world;
  const answer = await asked(() => stripe.paymentIntents.cancel(id));
  if (answer.kind === "unknown") return "later";
  let object = answer.kind === "known" ? answer.object : null;
  if (object === null) {
    const asking = await asked(() => stripe.paymentIntents.retrieve(id));
    if (asking.kind !== "known") return "later";
    ({ object } = asking);
  }
  if (object.status === "canceled") {
    return await turn({ kind: "ended", paymentIntentId: id, reason: reason || reasonOf(object) });
  }
  return object.status === "succeeded" || object.status === "processing"
    ? await settle(world, object)
    : "later";
}

const REASON_LENGTH_MAX = 500;

/** The reason that the customer may read. */
function reasonOf({ status, last_payment_error: error }: Stripe.PaymentIntent): string {
  const text = error?.message ??
    (status === "requires_action"
      ? "The bank asks the customer to confirm the payment."
      : "The payment was canceled.");
  return text.slice(0, REASON_LENGTH_MAX);
}

/** The answer to a call: an object, a refusal that a repetition would get again, or neither. */
type Answer =
  | { readonly kind: "known"; readonly object: Stripe.PaymentIntent }
  | { readonly kind: "refused"; readonly reason: string }
  /** @param isRepeated whether Stripe repeated the failure of an earlier call with the same key */
  | { readonly kind: "unknown"; readonly isRepeated: boolean };

/** Refusals about the call itself. All others (401, 403, 409, 429, 5xx) may pass. */
const FINAL: ReadonlySet<number> = new Set([400, 402, 404]);

async function asked(call: () => Promise<Stripe.PaymentIntent>): Promise<Answer> {
  try {
    return { kind: "known", object: await call() };
  } catch (error) {
    const { type, statusCode, message, headers } = error as Partial<Stripe.errors.StripeError>;
    if (type === undefined) throw error;
    const isAboutKey = type === "StripeIdempotencyError";
    if (statusCode !== undefined && FINAL.has(statusCode) && !isAboutKey) {
      return { kind: "refused", reason: (message ?? "The payment was refused.").slice(0, REASON_LENGTH_MAX) };
    }
    const isRepeated = (headers as Record<string, string> | undefined)?.["idempotent-replayed"] === "true";
    return { kind: "unknown", isRepeated: isRepeated || isAboutKey };
  }
}
