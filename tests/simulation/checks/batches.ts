// Batches: each place of a batch is done at most once, however often the batch is sent, with or without a key of its own; and
// a place that was answered names the event or the reservation that is there.

import { type Call, elementsOf, isBatch } from "../history.ts";
import type { Input } from "../../model/document.ts";
import type { Checker } from "../watch.ts";

const DAY_MS = 24 * 3_600_000;

/** Compares batches with the events and reservations that they left. */
export function batchesChecker(): Checker {
  return {
    name: "batches",
    atEnd(scene) {
      const rowsOf = (table: string) =>
        Map.groupBy(scene.server.tables.list(table), ({ metadata }) => String(metadata));
      const [events, reservations] = [rowsOf("events"), rowsOf("reservations")];
      const idsOf: IdsOf = ({ call, metadata }) => {
        const rows = (call === "reserve" ? reservations : events).get(JSON.stringify(metadata)) ?? [];
        return rows.map(({ id }) => String(id));
      };
      for (const call of scene.calls) {
        if (isBatch(call.request) && !isForgotten(call)) check(call, idsOf);
      }
    },
  };
}

/** Whether first answers of a call may be forgotten before its last turn. */
function isForgotten({ attempts }: Call): boolean {
  const moments = attempts.flatMap(({ turns }) => turns.map(({ lookedAtMs }) => lookedAtMs));
  return Math.max(...moments) - Math.min(...moments) >= DAY_MS;
}

type Done = { readonly eventId?: string; readonly reservationId?: string };
type Result = { readonly ok: boolean; readonly data?: Done };
type IdsOf = (element: Input) => string[];

function check({ no, request, answer }: Call, idsOf: IdsOf): void {
  const results = (answer?.status === 200 ? answer.model.data?.["results"] : []) as readonly Result[];
  for (const [place, element] of elementsOf(request).entries()) {
    const ids = idsOf(element);
    if (ids.length > 1) throw new Error(`call ${no} was done ${ids.length} times at ${place}`);
    const { eventId, reservationId } = results?.[place]?.data ?? {};
    const told = eventId ?? reservationId;
    if (told !== undefined && ids[0] !== told) {
      throw new Error(`call ${no} was answered with ${told} at ${place}, and there is ${ids[0] ?? "none"}`);
    }
  }
}
