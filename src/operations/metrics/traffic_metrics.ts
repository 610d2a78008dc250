// The metrics of what comes in from callers and goes out to others.

import { generationsUnderWay } from "../../integrations/compose/compose.ts";
import { GATEWAY_OUTCOMES } from "../../process/counts/gateway_counts.ts";
import { ANSWER_CODES } from "../../process/counts/request_counts.ts";
import { counter, counters, gauge, type Metric, ofTerm } from "./metric.ts";

/** Requests, streams and downloads. */
export const REQUESTS: readonly Metric[] = [
  counters(
    "holdfast_requests_total",
    "Requests answered, by route and code: ok, or the code of the error.",
    ["method", "route", "code"],
    function* ({ requests }) {
      for (const { method, route, codes } of requests.routes) {
        for (const [index, code] of ANSWER_CODES.entries()) {
          const value = codes[index] as number;
          // A series for each of 30 errors of each route would be thousands: one appears with its first answer.
          if (code === "ok" || value > 0) yield [{ method, route, code }, value];
        }
      }
    },
  ),
  counter(
    "holdfast_replays_total",
    "Answers repeated under an idempotency key.",
    ({ requests }) => requests.routes.reduce((sum, { replayed }) => sum + replayed, 0),
  ),
  gauge(
    "holdfast_requests_in_flight",
    "Requests without an answer yet.",
    ({ counts: { requests } }) => requests.routes.reduce((sum, { inFlight }) => sum + inFlight, 0),
  ),
  gauge("holdfast_streams", "Usage streams open in this process.", ({ counts }) => counts.streams.open),
  gauge(
    "holdfast_streams_of_one_app",
    "Usage streams open of the app that has most.",
    ({ streams }) => streams.ofAppMost,
  ),
  counter("holdfast_stream_states_total", "States sent by usage streams.", ({ streams }) => streams.states),
  counters(
    "holdfast_streams_ended_total",
    "Usage streams that ended, by the reason sent to the reader; left: the reader disconnected.",
    ["reason"],
    ({ streams }) => [
      ...Object.entries(streams.ended).map(([reason, count]) => [{ reason }, count] as const),
      [{ reason: "left" }, streams.left] as const,
    ],
  ),
  gauge("holdfast_compose_calls", "Compose generations in flight.", () => generationsUnderWay().all),
  gauge(
    "holdfast_compose_calls_of_one_workspace",
    "Those of the workspace that has most.",
    () => generationsUnderWay().ofWorkspaceMost,
  ),
  gauge("holdfast_downloads", "Exports being downloaded.", ({ counts }) => counts.downloads.open),
  counters(
    "holdfast_downloads_ended_total",
    "Downloads that ended: whole, or because the reader left, took nothing (still) or something failed; refused: above a share.",
    ["end"],
    ({ downloads }) => [
      ...Object.entries(downloads.ended).map(([end, count]) => [{ end }, count] as const),
      [{ end: "refused" }, downloads.refused] as const,
    ],
  ),
];

/** Bodies of requests, and wrong tokens. */
export const BODIES: readonly Metric[] = [
  {
    type: "gauge",
    name: "holdfast_body_held_bytes",
    help: "Memory that request bodies take, by pot: keyed (128 MiB), keyless (4 MiB).",
    labels: ["pot"],
    read: ({ counts }) => Object.entries(counts.bodies.heldBytes).map(([pot, bytes]) => [{ pot }, bytes]),
  },
  counters(
    "holdfast_bodies_ended_total",
    "Request bodies ended or refused because their pot, or the share of their app, was full.",
    ["pot"],
    ({ bodies }) => Object.entries(bodies.full).map(([pot, count]) => [{ pot }, count]),
  ),
  counters(
    "holdfast_bodies_refused_total",
    "Request bodies refused before they were parsed: large, structure, fields, slow.",
    ["reason"],
    ({ bodies }) => Object.entries(bodies.refused).map(([reason, count]) => [{ reason }, count]),
  ),
  gauge(
    "holdfast_bodies_in_thread",
    "Large bodies of the gateway that are read in their thread, or wait for it.",
    ({ counts }) => counts.bodies.inThread,
  ),
  counters(
    "holdfast_wrong_tokens_total",
    "Wrong tokens of console and admin API: refused, or limited because there were too many.",
    ["answer"],
    ({ wrongTokens }) => Object.entries(wrongTokens).map(([answer, count]) => [{ answer }, count]),
  ),
];

/** Messages of webhooks. */
export const WEBHOOKS: readonly Metric[] = [
  counters(
    "holdfast_webhook_attempts_total",
    "Attempts to deliver a message, by result.",
    ["end"],
    ({ webhooks }) => Object.entries(webhooks.attempts).map(([end, count]) => [{ end }, count]),
  ),
  counters(
    "holdfast_webhook_messages_total",
    "Messages delivered, and messages given up.",
    ["status"],
    ({ webhooks }) => [
      [{ status: "delivered" }, webhooks.delivered],
      [{ status: "failed" }, webhooks.failed],
    ],
  ),
  counter(
    "holdfast_webhooks_disabled_total",
    "Webhook endpoints disabled because they only failed.",
    ({ webhooks }) => webhooks.disabled,
  ),
  ofTerm(
    "holdfast_webhook_messages_in_flight",
    "Messages being sent now.",
    ({ sender }) => sender.inFlight,
  ),
  ofTerm(
    "holdfast_webhook_messages_pending",
    "Messages waiting for delivery, up to 10,000 of each endpoint.",
    ({ sender }) => sender.backlog?.pending,
  ),
  ofTerm(
    "holdfast_webhook_oldest_pending_seconds",
    "Age of the oldest message waiting for delivery; 0 without one.",
    ({ sender }) => sender.backlog?.oldestSeconds,
  ),
];

/** Calls of the gateway. */
export const GATEWAY: readonly Metric[] = [
  gauge("holdfast_gateway_calls", "Gateway calls in flight.", ({ counts }) => counts.gateway.open),
  gauge(
    "holdfast_gateway_streams",
    "Gateway calls in flight that stream.",
    ({ counts }) => counts.gateway.streams,
  ),
  gauge(
    "holdfast_gateway_reading_on",
    "Gateway calls whose callers have left, and that are read on for the report of their usage.",
    ({ counts }) => counts.gateway.readingOn,
  ),
  counter(
    "holdfast_gateway_read_on_refused_total",
    "Gateway calls that were not read on after their callers left, because too many were.",
    ({ gateway }) => gateway.readOnRefused,
  ),
  counters(
    "holdfast_gateway_calls_total",
    "Gateway calls that ended, by outcome.",
    ["outcome"],
    ({ gateway }) => GATEWAY_OUTCOMES.map((outcome) => [{ outcome }, gateway.outcomes[outcome]]),
  ),
  counter(
    "holdfast_gateway_unsettled_total",
    "Holds of gateway calls that could not be settled in time, and expire.",
    ({ gateway }) => gateway.unsettled,
  ),
];

/** Messages of Stripe. */
export const STRIPE: readonly Metric[] = [
  counters(
    "holdfast_stripe_messages_total",
    "Messages of Stripe and retries of them, by result; unhandled: paid and not granted yet.",
    ["result"],
    ({ stripe: { handled, ignored, unhandled } }) => [
      [{ result: "handled" }, handled],
      [{ result: "ignored" }, ignored],
      [{ result: "unhandled" }, unhandled],
    ],
  ),
  counters(
    "holdfast_top_up_looks_total",
    "Looks of this process at top-ups under way, by result: settled, later, or a fault such as an app without a key.",
    ["result"],
    ({ stripe: { topUpsSettled, topUpsLater, topUpsFaults } }) => [
      [{ result: "settled" }, topUpsSettled],
      [{ result: "later" }, topUpsLater],
      [{ result: "fault" }, topUpsFaults],
    ],
  ),
];
