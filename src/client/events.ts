// Reads metered events.

import { CallGroup } from "./call_group.ts";
import { pagesByOffset } from "./pages.ts";
import { type CallOptions, requireWhole } from "./transport.ts";
import { pathMember } from "./wire.ts";
import type { EventDetail, EventPage, EventQuery, MeteredEvent } from "./wire_types.ts";

const PAGE_ROWS_MAX = 100;
const OFFSET_MAX = 10_000;

/** `client.events`. */
export class Events extends CallGroup {
  /**
   * Reads a page of events, newest first.
   *
   * @example
   * ```ts
   * await client.track("user_1", "image.render");
   * const { events } = await client.events.list({ userId: "user_1", limit: 10 });
   * console.log(events[0]?.eventType); // "image.render"
   * ```
   */
  list(query: EventQuery = {}, call?: CallOptions): Promise<EventPage> {
    return this.send("GET", "/events", "secret", call, query);
  }

  /**
   * Reads all events, newest first, page by page as you go. `limit` is the size of a page. Each event is
   * returned once, even if others arrive meanwhile. Reading more than about 10,000 events rejects.
   *
   * @example
   * ```ts
   * await client.track("user_1", "image.render", 1, {}, { costCents: 4.2 });
   * await client.track("user_1", "image.render", 1, {}, { costCents: 4.2 });
   * let cents = 0;
   * for await (const event of client.events.all({ userId: "user_1" })) cents += event.costCents;
   * console.log(cents); // 8.4
   * ```
   */
  async *all(query: Omit<EventQuery, "offset"> = {}, call?: CallOptions): AsyncGenerator<MeteredEvent, void> {
    const limit = requireWhole("limit", query.limit ?? PAGE_ROWS_MAX, 1, PAGE_ROWS_MAX);
    const read = async (offset: number) => (await this.list({ ...query, limit, offset }, call)).events;
    yield* pagesByOffset(read, limit, OFFSET_MAX);
  }

  /**
   * Reads one event with its details. It rejects with `not_found` for an unknown event, and for one of a user who opted
   * out.
   *
   * @example
   * ```ts
   * const { eventId } = await client.track("user_1", "image.render", 1, { model: "flux-pro" });
   * const event = await client.events.get(eventId);
   * console.log(event.metadata); // { model: "flux-pro" }
   * console.log(event.matchedGroupIds); // ["lg_pro_images", "lg_pro_premium"]
   * ```
   */
  async get(eventId: string, call?: CallOptions): Promise<EventDetail> {
    const path = `/events/${pathMember("eventId", eventId)}`;
    return await this.send("GET", path, "secret", call);
  }
}
