// The metrics of webhooks: what this process sends, and what waits for it.

import type { Registry } from "prom-client";
import type { Service } from "../../cluster/service.ts";
import { addCounter, addCounters, addGauge } from "./metric_forms.ts";

/** Adds the metrics of webhooks. */
export function addWebhooks(registry: Registry, service: Service): void {
  const { webhooks } = service.counts;
  addCounters(
    registry,
    "holdfast_webhook_attempts_total",
    "Attempts to deliver a message, by how each ended.",
    ["end"],
    () => Object.entries(webhooks.attempts).map(([end, count]) => [{ end }, count]),
  );
  addCounters(
    registry,
    "holdfast_webhook_messages_total",
    "Messages that were delivered, and those that were given up.",
    ["status"],
    () => [[{ status: "delivered" }, webhooks.delivered], [{ status: "failed" }, webhooks.failed]],
  );
  addCounter(
    registry,
    "holdfast_webhooks_disabled_total",
    "Webhooks that were disabled because their endpoint only failed.",
    () => webhooks.disabled,
  );
  addGauge(
    registry,
    "holdfast_webhook_messages_in_flight",
    "Messages on their way.",
    () => service.serving?.sender.inFlight ?? null,
  );
  addGauge(
    registry,
    "holdfast_webhook_messages_pending",
    "Messages that wait for delivery, of each webhook up to 10,000.",
    () => service.serving?.sender.backlog?.pending ?? null,
  );
  addGauge(
    registry,
    "holdfast_webhook_oldest_pending_seconds",
    "The age of the oldest message that waits for delivery; 0 while none does.",
    () => service.serving?.sender.backlog?.oldestSeconds ?? null,
  );
}
