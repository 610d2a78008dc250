// The client of Stripe's API: the official package, without retries of its own. What a call without an answer has done is
// asked for, never guessed.

import type { Stripe } from "stripe";
import type { Mode } from "../../../actors/port.ts";
import { STRIPE_LIMITS } from "../../process/limits.ts";
import { stripeKeyOf, type StripeKeys } from "../../process/stripe_keys.ts";
import type { App } from "../../tenant/registry.ts";

/** What payments use of a client. */
export type StripeApi = Pick<Stripe, "paymentIntents">;

/** Opens the client of a key. */
export type OpenStripe = (key: string) => Promise<StripeApi>;

/** Opens clients that call Stripe, or the base of the settings. The package is large: it is loaded with the first one. */
export function stripeOpener(base: string | null, http?: Stripe.HttpClientInterface): OpenStripe {
  const opened = new Map<string, Promise<StripeApi>>();
  const open = async (key: string): Promise<StripeApi> => {
    const { Stripe } = await import("stripe");
    const url = base === null ? null : new URL(base);
    return new Stripe(key, {
      maxNetworkRetries: 0,
      timeout: STRIPE_LIMITS.callMs,
      telemetry: false,
      httpClient: http ?? Stripe.createFetchHttpClient(),
      ...url === null ? {} : {
        protocol: url.protocol === "http:" ? "http" : "https",
        host: url.hostname,
        port: url.port === "" ? url.protocol === "http:" ? 80 : 443 : Number(url.port),
      },
    });
  };
  return (key) => {
    const known = opened.get(key);
    if (known !== undefined) return known;
    const opening = open(key);
    opened.set(key, opening);
    return opening;
  };
}

/** The key of an app in a mode; null for none. */
export function keyOf(
  keys: StripeKeys,
  { apps }: { readonly apps: ReadonlyMap<string, App> },
  { record }: App,
  mode: Mode,
): string | null {
  return stripeKeyOf(
    keys,
    mode,
    record.appId,
    () => [...apps.values()].filter(({ stripe }) => stripe.has(mode)).map(({ record }) => record.appId),
  );
}
