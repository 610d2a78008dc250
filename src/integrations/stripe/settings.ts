// The administrator's work on Stripe: the secret that signs its messages to an app and mode. Each is a change of the
// registry, as those of webhooks are. beyond.md, section 7.

import type { Mode } from "../../../actors/port.ts";
import { refusal } from "../../domain/values/refusal.ts";
import { answered, refused, type Result } from "../../domain/state/result.ts";
import type { Clock } from "../../process/clock.ts";
import type { Database } from "../../storage/database.ts";
import { type LastMessage, readLast } from "../../storage/stores/stripe_store.ts";
import type { App } from "../../tenant/registry.ts";
import type { StripeConnection } from "../../storage/rows/registry_rows.ts";
import type { RegistryChanges } from "../../tenant/registry_changes.ts";

/** What changes of the secret work on. */
export interface StripeAdminWorld {
  readonly changes: Pick<RegistryChanges, "change">;
  readonly clock: Clock;
}

/** Sets the secret; messages are held against it from the answer on. */
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
      return { rows: {}, answer: refused(refusal("not_found", `Stripe is not set for ${mode} mode`)) };
    }
    const removed = { ...connection, webhookSecret: "", removed: true };
    return { rows: { stripe: [removed] }, answer: answered(removed) };
  });
}

/** How Stripe is set up for a mode of an app; nulls where it is not, or where nothing has come yet. */
export interface StripeStanding {
  readonly connection: StripeConnection | null;
  readonly last: LastMessage | null;
}

/** How Stripe is set up for an app. */
export async function readStanding(
  database: Pick<Database, "query">,
  { record, stripe }: App,
): Promise<Record<Mode, StripeStanding>> {
  const last = await readLast(database, record.appId);
  const of = (mode: Mode) => {
    const connection = stripe.get(mode) ?? null;
    return { connection, last: connection === null ? null : last.get(mode) ?? null };
  };
  return { live: of("live"), test: of("test") };
}
