// Checks the signature of a message with Stripe's official package. The package is large and only some apps use Stripe, so
// it is loaded with the first message.

import type { Millis } from "../../domain/values/period.ts";
import { STRIPE_LIMITS } from "../../process/limits.ts";

const load = () => import("stripe").then(({ Stripe }) => Stripe);

let loaded: ReturnType<typeof load> | null = null;

/**
 * Returns the event in a payload; null for a signature by another secret, or one older than five minutes.
 *
 * @param payload the body, byte for byte
 * @param header the value of `Stripe-Signature`
 * @param now real time
 */
export async function eventOf(
  payload: string,
  header: string,
  secret: string,
  now: Millis,
): Promise<unknown> {
  const Stripe = await (loaded ??= load());
  const crypto = Stripe.createSubtleCryptoProvider();
  try {
    return await Stripe.webhooks.constructEventAsync(
      payload,
      header,
      secret,
      STRIPE_LIMITS.toleranceS,
      crypto,
      now,
    );
  } catch {
    return null;
  }
}
