// Use by day, for charts: an app's events added up by day, by kind of event or by user. beyond.md, section 8.

import { success } from "../http/answer.ts";
import { keylessEndpointsOn } from "../http/endpoint.ts";
import type { KeylessEndpoint } from "../http/endpoint_types.ts";
import * as service from "../contract/service.ts";
import { Refused } from "../http/errors.ts";
import { timeText } from "../contract/fields.ts";
import { type AddingWorld, addSomeUp } from "../../src/operations/sweeps/daily_use.ts";
import { firstUnadded, listDailyUse } from "../../src/storage/queries/daily_use.ts";
import type { Registry } from "../../src/tenant/registry.ts";

/** What reads of daily use work on. */
export interface DailyUseWorld extends AddingWorld {
  readonly database: Parameters<typeof listDailyUse>[0];
  readonly registry: Pick<Registry, "apps">;
}

const endpoint = keylessEndpointsOn<DailyUseWorld>();

export const DAILY_USE: readonly KeylessEndpoint<DailyUseWorld>[] = [
  endpoint(service.listDailyUse, async ({ world, input }) => {
    const { appId, mode, from, to, by, userId } = input;
    const realm = world.registry.apps.get(appId)?.realms[mode];
    if (realm === undefined) throw new Refused("not_found", "No such app");
    const now = realm.now();
    await addSomeUp(world, realm);
    const query = { realm: realm.realm, from, to, by, userId: userId ?? null };
    const [days, unadded] = await Promise.all([
      listDailyUse(world.database, query),
      firstUnadded(world.database, realm.realm),
    ]);
    return success({
      by,
      from: service.dayText(from),
      to: service.dayText(to),
      countedUntil: timeText(Math.min(unadded ?? now, now)),
      days: days.map(({ day, ...use }) => ({ day: service.dayText(day), ...use })),
    });
  }),
];
