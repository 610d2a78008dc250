// What is measured on filled tables: calls of the API that read them, and one step of each sweep as the service's own
// code does it.
import { MERGE_LIMITS, REQUEST_LIMITS, SWEEP_LIMITS } from "../../src/process/limits.ts";
import { removeOld } from "../../src/operations/sweeps/retention.ts";
import { getEvent, listEvents } from "../../src/storage/queries/feed.ts";
import { listLedger } from "../../src/storage/queries/ledger.ts";
import { listSubscriptionHistory } from "../../src/storage/queries/subscription_history.ts";
import type { Serving } from "../../src/cluster/service.ts";
import { sweepIdempotency } from "../../src/operations/sweeps/sweeps.ts";
import type { Database } from "../../src/storage/database.ts";
import { deleteHistory } from "../../src/storage/stores/erasure_store.ts";
import { moveHistory } from "../../src/storage/stores/merge_store.ts";
import { openUserStore } from "../../src/storage/stores/user_store.ts";
import { aliasKey, EVENT_TYPES, NAMES, type Size } from "./table_rows.ts";

/** Calls that read, by what they show; a cold user is another one each time. */
export function readsOf({ users }: Size, someEvent: string): Record<string, (round: number) => string> {
  const { light, heavy, merged, hidden } = NAMES;
  const cold = (place: number) => (round: number) => 100 + (round * 7919 + place * 1_000) % (users - 100);
  const paths: Record<string, string> = {
    "feed, app": "events",
    "feed, app, usual type": `events?eventType=${EVENT_TYPES.common}`,
    "feed, app, rare type": `events?eventType=${EVENT_TYPES.rare}`,
    "feed, app, deep": `events?offset=${REQUEST_LIMITS.feedOffsetMax}`,
    "feed, light user": `events?userId=${light}`,
    "feed, heavy user": `events?userId=${heavy}`,
    "feed, heavy user, rare type": `events?userId=${heavy}&eventType=${EVENT_TYPES.rare}`,
    "feed, heavy user, no such type": `events?userId=${heavy}&eventType=none`,
    "feed, heavy user, deep": `events?userId=${heavy}&offset=${REQUEST_LIMITS.feedOffsetMax}`,
    "feed, merged heavy user": `events?userId=${merged}`,
    "feed, hidden heavy user": `events?userId=${hidden}`,
    "event by id": `events/${someEvent}`,
    "usage, warm user": `usage?userId=${light}`,
    "user, heavy": `users/${heavy}`,
    "credits, heavy": `credits?userId=${heavy}&includeExpired=true`,
    "ledger, heavy": `credits/history?userId=${heavy}`,
    "ledger, merged heavy": `credits/history?userId=${merged}`,
    "customer, heavy": `customers/${heavy}`,
  };
  const reads: Record<string, (round: number) => string> = {};
  for (const [name, path] of Object.entries(paths)) reads[name] = () => path;
  const [usage, user] = [cold(1), cold(2)];
  reads["usage, cold user"] = (round) => `usage?userId=user-${usage(round)}`;
  reads["user, cold"] = (round) => `users/user-${user(round)}`;
  return reads;
}

/** The same reads below HTTP, for their plans. */
export function queriesOf(database: Database, realm: number, keys: Readonly<Record<string, number>>) {
  const query = {
    realm,
    logs: { isOn: true, keptFrom: 0 },
    userId: null as string | null,
    eventType: null as string | null,
    limit: REQUEST_LIMITS.feedLimitDefault,
    offset: 0,
  };
  const offset = REQUEST_LIMITS.feedOffsetMax;
  const feed = (part: Partial<typeof query>) => () => listEvents(database, { ...query, ...part });
  const ledger = (userKey: number) => () =>
    listLedger(database, { userKey, balanceId: null, after: null, limit: REQUEST_LIMITS.ledgerLimitDefault });
  const { heavy, merged } = NAMES;
  const key = (name: string) => keys[name] as number;
  return {
    "feed, app": feed({}),
    "feed, app, deep": feed({ offset }),
    "feed, app, rare type": feed({ eventType: EVENT_TYPES.rare }),
    "feed, light user": feed({ userId: NAMES.light }),
    "feed, heavy user": feed({ userId: heavy }),
    "feed, heavy user, no such type": feed({ userId: heavy, eventType: "none" }),
    "feed, heavy user, deep": feed({ userId: heavy, offset }),
    "feed, merged heavy user": feed({ userId: merged }),
    "event by id": () => getEvent(database, realm, "evt_00000000000000000019", query.logs),
    "load of a user": () => openUserStore(database).load([{ realm, id: NAMES.light }], Date.now()),
    "ledger, heavy": ledger(key(heavy)),
    "ledger, merged heavy": ledger(key(merged)),
    "subscription history": () =>
      listSubscriptionHistory(database, key(heavy), REQUEST_LIMITS.historyRowsMax),
  };
}

/** One step of each sweep. What is due of users is only listed: settling it is a turn of each user, as any call. */
export function stepsOf(serving: Serving, size: Size, keys: Readonly<Record<string, number>>) {
  const { database, store, registry } = serving;
  const [realm] = registry.realms.values();
  const once = (): Serving => {
    let steps = 1;
    const term = {
      doors: serving.term.doors,
      get isServing() {
        return steps-- > 0;
      },
    };
    return { ...serving, term: term as Serving["term"] };
  };
  const erased = keys[NAMES.erased] as number;
  return {
    "list what is due": () => store.listDue(realm?.realm as number, Date.now(), SWEEP_LIMITS.stepRowsMax),
    "first answers": () => sweepIdempotency(once()),
    "prompt logs": () => removeOld("prompt_logs")(once()),
    "history move": () =>
      database.transaction((session) => moveHistory(session, aliasKey(size), MERGE_LIMITS.historyRowsMax)),
    "erasure": () =>
      database.transaction((session) => deleteHistory(session, [erased], SWEEP_LIMITS.stepRowsMax * 10)),
  };
}
