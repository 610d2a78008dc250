// Settings of Stripe for an app and mode: the signing secret of its endpoint. Each write is a change of the registry, so it
// is in force in every process before it is answered.

import type { Mode } from "../../../actors/port.ts";
import { refusal } from "../../domain/values/refusal.ts";
import { answered, refused, type Result } from "../../domain/state/result.ts";
import type { Clock } from "../../process/clock.ts";
import type { Database } from "../../storage/database.ts";
import { type LastMessage, readLast } from "../../storage/stores/stripe_store.ts";
import type { App } from "../../tenant/registry.ts";
import type { StripeConnection } from "../../storage/rows/registry_rows.ts";
import type { RegistryChanges } from "../../tenant/registry_changes.ts";

/** What a change of the secret uses. */
export interface StripeAdminWorld {
  readonly changes: Pick<RegistryChanges, "change">;
  readonly clock: Clock;
}

/** Sets the secret; from the answer on, messages are checked against it. */
export function setStripeSecret(
  { changes, clock }: StripeAdminWorld,
  app: App,
  mode: Mode,
  webhookSecret: string,
): Promise<StripeConnection> {
  const { appId } = app.record;
  const connection = { appId, mode, webhookSecret, setAt: clock.now(), removed: false };
  return changes.change(app.cell, () => ({ rows: { stripe: [connection] }, answer: connection }));
}

/** Removes the secret: messages of this app and mode are refused. */
export async function removeStripeSecret(
  { changes }: StripeAdminWorld,
  app: App,
  mode: Mode,
): Promise<Result<StripeConnection>> {
  return await changes.change(app.cell, () => {
    const connection = app.stripe.get(mode);
    if (connection === undefined) {
      return { rows: {}, answer: refused(refusal("not_found", `Stripe is not set up for ${mode} mode`)) };
    }
    const removed = { ...connection, webhookSecret: "", removed: true };
    return { rows: { stripe: [removed] }, answer: answered(removed) };
  });
}

/** The settings of a mode, and its last message; null without one. */
export interface StripeStatus {
  readonly connection: StripeConnection | null;
  readonly last: LastMessage | null;
}

/** Reads the settings of an app in both modes. */
export async function readStripeStatus(
  database: Pick<Database, "query">,
  { record, stripe }: App,
): Promise<Record<Mode, StripeStatus>> {
  const last = await readLast(database, record.appId);
  const of = (mode: Mode) => {
    const connection = stripe.get(mode) ?? null;
    return { connection, last: connection === null ? null : last.get(mode) ?? null };
  };
  return { live: of("live"), test: of("test") };
}
