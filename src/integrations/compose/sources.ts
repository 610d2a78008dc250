// Data sources: what a template may show of exactly one user, in the shapes that the API answers.

import type { Realm } from "../../../actors/call.ts";
import type { ShownBalance } from "../../domain/credits/balances.ts";
import { statusOf } from "../../domain/state/credit.ts";
import type { CounterReading } from "../../domain/state/counter.ts";
import type { DataSource } from "../../domain/catalog/catalog.ts";
import type { Millis } from "../../domain/values/period.ts";
import type { Subscription } from "../../domain/state/subscription.ts";
import type { UserAnswer } from "../../domain/usage.ts";
import { COMPOSE_LIMITS } from "../../process/limits.ts";
import { listEvents } from "../../storage/queries/feed.ts";
import type { Database } from "../../storage/database.ts";
import { readPerson } from "../../storage/stores/people_store.ts";

/** Functions that show records on the wire. */
export interface WireViews {
  readonly counter: (reading: CounterReading) => unknown;
  readonly subscription: (userId: string, row: Subscription) => unknown;
  readonly balance: (balance: ShownBalance, now: Millis) => unknown;
}

/** What sources are read from. */
interface SourceReader {
  readonly database: Database;
  readonly realm: Realm;
  /** The user, alias resolved; rows of tables are looked up by its canonical id. */
  readonly user: UserAnswer;
  readonly views: WireViews;
}

/** Reads the value of a source. */
export async function readSource(reader: SourceReader, source: DataSource): Promise<unknown> {
  const { user, views } = reader;
  switch (source) {
    case "user_usage":
      return user.counters.map(views.counter);
    case "user_events":
      return await readEvents(reader);
    case "user_attributes":
      return await readAttributes(reader);
    case "subscription":
      return user.subscription === null ? null : views.subscription(user.userId, user.subscription);
    case "credits":
      return user.credits.balances
        .filter(({ row }) => statusOf(row, user.credits.now) === "active")
        .map((balance) => views.balance(balance, user.credits.now));
  }
}

/** The user's last events, without prompts. */
async function readEvents({ database, realm, user }: SourceReader): Promise<unknown> {
  const events = await listEvents(database, {
    realm: realm.realm,
    logs: { isOn: false, keptFrom: 0 },
    userId: user.userId,
    eventType: null,
    limit: COMPOSE_LIMITS.eventsMax,
    offset: 0,
  });
  return events.map(({ hasLog: _, promptPreview: __, ...event }) => event);
}

/** The properties of the person behind the user; none where there is no person. */
async function readAttributes({ database, realm, user }: SourceReader): Promise<unknown> {
  const person = await readPerson(database, realm.realm, user.userId);
  return person === null ? {} : JSON.parse(person.properties);
}
