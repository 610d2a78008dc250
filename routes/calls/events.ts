// The event feed.

import type { Realm } from "../../actors/call.ts";
import type { Term } from "../../actors/term.ts";
import { invalidMember, Refused } from "../http/errors.ts";
import type { CallerKey } from "../../src/tenant/registry.ts";
import { success } from "../http/answer.ts";
import { endpointsOn } from "../http/endpoint.ts";
import type { Endpoint } from "../http/endpoint_types.ts";
import * as contract from "../contract/events.ts";
import { getEvent, listEvents, type LogView } from "../../src/storage/queries/feed.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";

/** What reads of the feed need of the running service. */
export interface FeedWorld {
  readonly term: Pick<Term, "flush">;
  readonly database: Parameters<typeof listEvents>[0];
}

const endpoint = endpointsOn<FeedWorld>();

/** Which prompts and responses the app shows now. */
function logViewOf({ realm, key }: { readonly realm: Realm; readonly key: CallerKey }): LogView {
  const { promptLogging, promptLogRetentionMs } = realm.catalog;
  const hidesTexts = key.class === "reader";
  return { isOn: promptLogging, hidesTexts, keptFrom: realm.now() - promptLogRetentionMs };
}

export const EVENTS: readonly Endpoint<FeedWorld>[] = [
  endpoint(contract.listEvents, async ({ world, caller, input }) => {
    await world.term.flush();
    const limit = input.limit ?? REQUEST_LIMITS.feedLimitDefault;
    const offset = input.offset ?? 0;
    const { from = null, to = null } = input;
    if (from !== null && to !== null && from > to) throw invalidMember("to", "must not be before from");
    const events = await listEvents(world.database, {
      realm: caller.realm.realm,
      logs: logViewOf(caller),
      userId: input.userId ?? null,
      eventType: input.eventType ?? null,
      status: input.status ?? null,
      runId: input.runId ?? null,
      from,
      to,
      limit,
      offset,
    });
    return success({ events, limit, offset, logPromptsEnabled: caller.realm.catalog.promptLogging });
  }),
  endpoint(contract.getEvent, async ({ world, caller, input }) => {
    await world.term.flush();
    const { realm } = caller.realm;
    const event = await getEvent(world.database, realm, input.eventId, logViewOf(caller));
    if (event === null) throw new Refused("not_found", "Event not found");
    return success(event);
  }),
];
