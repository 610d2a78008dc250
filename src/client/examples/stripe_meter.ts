// Hands overage to Stripe: a receiver of the messages `usage.overage`, which sends each as one meter event. Stripe puts what
// the meter sums up on the customer's next invoice. STRIPE_METER.md says what Stripe promises, and what it does not.

import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import process from "node:process";
import { text } from "node:stream/consumers";
import { HoldfastError, verifyWebhook } from "holdfast-client";

const { HOLDFAST_WEBHOOK_SECRET = "", PORT = "3000" } = process.env;
const { STRIPE_API_KEY = "", STRIPE_API_BASE = "https://api.stripe.com" } = process.env;

/** The Stripe customer of each user; look it up where your app keeps it. */
const CUSTOMERS = mapOf(process.env.STRIPE_CUSTOMERS);
/** The event name of the meter of each limit group. */
const METERS = mapOf(process.env.STRIPE_METERS);

function mapOf(json = "{}"): ReadonlyMap<string, string> {
  return new Map(Object.entries(JSON.parse(json) as Record<string, string>));
}

/** The data of a message. `total` is all settled overage of the window, up to and with this message. */
interface Overage {
  readonly userId: string;
  readonly groupId: string;
  readonly hour: string;
  readonly amount: number;
  readonly total: number;
  readonly period: { readonly start: string };
}

/**
 * The whole units that become due with a message: Stripe takes no fractions. What is left of a unit counts in the next
 * message of the window. It follows from the message alone, so a message that is sent again has the same value.
 */
function wholeUnits({ amount, total }: Overage): number {
  // Amounts have six places; their difference as numbers may have more.
  const before = Math.round((total - amount) * 1e6) / 1e6;
  return Math.floor(total) - Math.floor(before);
}

/** An earlier attempt may have arrived at Stripe, which knows it for a day. */
const AGE_MS_MAX = 23 * 3_600_000;

/** Sends one meter event. Returns the status for the service: it sends a message again unless that is 2xx. */
async function bill(id: string, data: Overage, ageMs: number): Promise<number> {
  const { userId, groupId, hour, period } = data;
  const value = wholeUnits(data);
  if (value <= 0) return 204;
  if (ageMs > AGE_MS_MAX) {
    console.log(`Too old to be sent again: compare ${id} with Stripe`);
    return 500;
  }
  const [customer, meter] = [CUSTOMERS.get(userId), METERS.get(groupId)];
  if (customer === undefined || meter === undefined) {
    console.log(`No customer to bill ${value} of ${groupId} to: ${userId}`);
    return 500;
  }
  // The hour may have begun before the window, which belongs to another invoice then.
  const at = Math.max(Date.parse(hour), Date.parse(period.start));
  const response = await fetch(`${STRIPE_API_BASE}/v1/billing/meter_events`, {
    method: "POST",
    headers: { authorization: `Bearer ${STRIPE_API_KEY}` },
    body: new URLSearchParams({
      event_name: meter,
      identifier: id,
      timestamp: String(Math.floor(at / 1000)),
      "payload[stripe_customer_id]": customer,
      "payload[value]": String(value),
    }),
  });
  const { error } = await response.json() as { readonly error?: { readonly message?: string } };
  if (response.ok) {
    console.log(`${customer} is billed ${value} of ${meter}`);
    return 204;
  }
  // An earlier attempt has arrived, and its answer was lost.
  if (response.status === 400 && error?.message?.includes("already exists") === true) return 204;
  console.log(`Stripe refused ${id} with ${response.status}: ${error?.message}`);
  return 500;
}

/** Handles a request. */
async function receive(request: IncomingMessage): Promise<number> {
  const { headers } = request;
  try {
    const body = await text(request);
    const message = await verifyWebhook({ secret: HOLDFAST_WEBHOOK_SECRET, headers, body });
    if (message.type !== "usage.overage") return 204;
    const ageMs = Date.now() - Date.parse(message.timestamp);
    return await bill(String(headers["webhook-id"]), message.data, ageMs);
  } catch (error) {
    console.log(String(error));
    return error instanceof HoldfastError ? 400 : 500;
  }
}

const server = createServer((request, response) => {
  receive(request).then((status) => response.writeHead(status).end());
});
server.listen(Number(PORT), "127.0.0.1", () => {
  console.log(`Listening on http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
process.once("SIGTERM", () => server.close());
