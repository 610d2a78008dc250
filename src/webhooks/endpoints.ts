// Creating, changing and removing webhook endpoints, and rotating their secrets. Each is a change of the registry, in force
// for every decision after its answer.

import type { IdSource } from "../domain/values/ids.ts";
import { invalidField, refusal } from "../domain/values/refusal.ts";
import { answered, refused, type Result } from "../domain/state/result.ts";
import type { Clock } from "../process/clock.ts";
import type { Features } from "../process/features.ts";
import { WEBHOOK_LIMITS } from "../process/webhook_limits.ts";
import { randomBase64 } from "../process/secrets/random.ts";
import { urlFault } from "../process/address.ts";
import type { App } from "../tenant/registry.ts";
import type { Webhook, WebhookSecret } from "../storage/rows/registry_rows.ts";
import type { RegistryChanges } from "../tenant/registry_changes.ts";

/** What changes of endpoints use. */
export interface WebhooksWorld {
  readonly changes: Pick<RegistryChanges, "change">;
  readonly features: Pick<Features, "allowsPrivateWebhooks">;
  readonly ids: IdSource;
  readonly clock: Clock;
}

/** The settings of a new endpoint. */
type WebhookInput = Pick<Webhook, "url" | "mode" | "events" | "description">;

/** Settings to change; absent members keep their values. */
type WebhookPatch = Partial<Pick<Webhook, "url" | "events" | "description" | "disabled">>;

/** Creates an endpoint of an app; its first secret is in force. */
export async function createWebhook(
  world: WebhooksWorld,
  app: App,
  input: WebhookInput,
): Promise<Result<Webhook>> {
  const fault = faultOf(world, input.url);
  if (fault !== null) return refused(invalidField("url", fault));
  const webhook: Webhook = {
    webhookId: world.ids.next("webhook"),
    appId: app.record.appId,
    ...input,
    disabled: false,
    secrets: [newSecret()],
    createdAt: app.realms[input.mode].now(),
    removed: false,
  };
  return await world.changes.change(app.cell, () => {
    // Within the change: of two concurrent calls, one may take the last place.
    if (app.webhooks.size >= WEBHOOK_LIMITS.ofAppMax) {
      const message = `The app has ${WEBHOOK_LIMITS.ofAppMax} webhooks already, which is the most`;
      return { rows: {}, answer: refused(refusal("invalid_request", message)) };
    }
    return { rows: { webhooks: [webhook] }, answer: answered(webhook) };
  });
}

/** Changes an endpoint. Pending messages go to the URL in force when they are sent. */
export async function changeWebhook(
  world: WebhooksWorld,
  app: App,
  webhookId: string,
  patch: WebhookPatch,
): Promise<Result<Webhook>> {
  const fault = patch.url === undefined ? null : faultOf(world, patch.url);
  if (fault !== null) return refused(invalidField("url", fault));
  return await change(world, app, webhookId, (webhook) => ({ ...webhook, ...patch }));
}

/** Returns what is wrong with an endpoint's URL, with the setting that allows it on a developer's machine. */
function faultOf({ features }: WebhooksWorld, url: string): string | null {
  const fault = urlFault(url, features.allowsPrivateWebhooks);
  if (fault === null || urlFault(url, true) !== null) return fault;
  return `${fault}, unless the service has HOLDFAST_WEBHOOKS_ALLOW_PRIVATE=true`;
}

/** Removes an endpoint. Its row stays, so that every process reads that it is removed. */
export async function removeWebhook(
  world: WebhooksWorld,
  app: App,
  webhookId: string,
): Promise<Result<Webhook>> {
  return await change(world, app, webhookId, (webhook) => ({
    ...webhook,
    url: "",
    events: [],
    description: null,
    disabled: true,
    secrets: [],
    removed: true,
  }));
}

/** Gives an endpoint a new secret. The previous one also signs for a day, in real time. */
export async function rotateWebhookSecret(
  world: WebhooksWorld,
  app: App,
  webhookId: string,
): Promise<Result<Webhook>> {
  return await change(world, app, webhookId, (webhook) => {
    const validUntil = world.clock.now() + WEBHOOK_LIMITS.oldSecretMs;
    const old = webhook.secrets.map((row) => row.validUntil === null ? { ...row, validUntil } : row);
    return { ...webhook, secrets: [newSecret(), ...old].slice(0, WEBHOOK_LIMITS.secretsMax) };
  });
}

async function change(
  { changes }: WebhooksWorld,
  app: App,
  webhookId: string,
  next: (webhook: Webhook) => Webhook,
): Promise<Result<Webhook>> {
  const unknown = refused(refusal("not_found", "Webhook not found"));
  if (!app.webhooks.has(webhookId)) return unknown;
  return await changes.change(app.cell, () => {
    const webhook = app.webhooks.get(webhookId);
    if (webhook === undefined) return { rows: {}, answer: unknown };
    const changed = next(webhook);
    return { rows: { webhooks: [changed] }, answer: answered(changed) };
  });
}

function newSecret(): WebhookSecret {
  return { secret: `whsec_${randomBase64(WEBHOOK_LIMITS.secretBytes)}`, validUntil: null };
}
