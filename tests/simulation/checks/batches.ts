// Batches of events: each place of a batch is tracked at most once, however often the batch is sent, with or without a key of
// its own; and a place that was answered names the event that is there.

import type { Call } from "../history.ts";
import type { Checker } from "../watch.ts";

const DAY_MS = 24 * 3_600_000;

/** Compares batches with the events that they left. */
export function batchesChecker(): Checker {
  return {
    name: "batches",
    atEnd(scene) {
      const events = Map.groupBy(scene.server.tables.list("events"), ({ metadata }) => String(metadata));
      const idsOf = (metadata: unknown) =>
        (events.get(JSON.stringify(metadata)) ?? []).map(({ id }) => String(id));
      for (const call of scene.calls) {
        if (call.request.op === "trackBatch" && !isForgotten(call)) check(call, idsOf);
      }
    },
  };
}

/** Whether first answers of a call may be forgotten before its last turn. */
function isForgotten({ attempts }: Call): boolean {
  const moments = attempts.flatMap(({ turns }) => turns.map(({ lookedAtMs }) => lookedAtMs));
  return Math.max(...moments) - Math.min(...moments) >= DAY_MS;
}

type Result = { readonly ok: boolean; readonly data?: { readonly eventId?: string } };

function check({ no, request, answer }: Call, idsOf: (metadata: unknown) => string[]): void {
  const results = (answer?.status === 200 ? answer.model.data?.["results"] : []) as readonly Result[];
  for (const [place, { metadata }] of (request.input["events"] as { metadata: unknown }[]).entries()) {
    const ids = idsOf(metadata);
    if (ids.length > 1) throw new Error(`call ${no} tracked its event ${place} ${ids.length} times`);
    const told = results?.[place]?.data?.eventId;
    if (told !== undefined && ids[0] !== told) {
      throw new Error(`call ${no} was answered with ${told} at ${place}, and there is ${ids[0] ?? "none"}`);
    }
  }
}
