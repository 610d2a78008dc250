// Opens what the settings name, and makes the services of a process: one on the embedded store or on the server of
// DATABASE_URL, or one for each database of HOLDFAST_DATABASES. Of several, those that cannot be reached are tried again
// while the others are served.

import { makeIdSource } from "../process/id_source.ts";
import { systemClock } from "../process/clock.ts";
import type { Features } from "../process/features.ts";
import { PROCESS_LIMITS } from "../process/limits.ts";
import { log, messageOf } from "../process/log.ts";
import { within } from "../process/rest.ts";
import { type Config, ConfigError } from "../process/settings.ts";
import type { Network } from "../channel/network.ts";
import type { ExpectedDatabase } from "../storage/database.ts";
import { openPostgres } from "../storage/postgres_database.ts";
import { openNetwork, portAfter } from "./cluster_address.ts";
import { Service, type ServiceOptions } from "./service.ts";
import { openStore, placesOf, refuseOneOfSeveral } from "./store.ts";
import { type ListedStore, StoreList } from "./store_list.ts";
import { Stores } from "./stores.ts";

/** The services of a process, and how to close their databases. */
interface OpenStores {
  readonly stores: Stores;
  close(): Promise<void>;
}

type Options = Pick<ServiceOptions, "spans" | "prepare">;

/** What the folder of the embedded store keeps, or else the settings have. */
interface Secrets {
  readonly features: Features;
  /** Null where the admin API is off. */
  readonly adminToken: string | null;
}

/**
 * Opens the databases of the settings.
 *
 * @param secretsOf called once the folder of the embedded store exists
 * @throws ConfigError that names what is wrong
 */
export async function openStores(
  config: Config,
  secretsOf: () => Promise<Secrets>,
  options: Options,
): Promise<OpenStores> {
  const isNamed = config.databases.some(({ name }) => name !== null);
  return isNamed
    ? await openSeveral(config, await secretsOf(), options)
    : await openOne(config, secretsOf, options);
}

async function openOne(
  config: Config,
  secretsOf: () => Promise<Secrets>,
  options: Options,
): Promise<OpenStores> {
  const [place] = placesOf(config) as [ReturnType<typeof placesOf>[number]];
  const { database } = await openStore(place);
  if (place.database !== null) await refuseOneOfSeveral(database);
  const clock = systemClock();
  const { features, adminToken } = await secretsOf();
  const service = new Service(database, makeIdSource(clock), clock, features, {
    ...options,
    adminToken,
    network: await openNetwork(config, database),
    share: shareOf(config),
  });
  return { stores: Stores.of(service), close: () => database.close() };
}

async function openSeveral(
  config: Config,
  { features, adminToken }: Secrets,
  options: Options,
): Promise<OpenStores> {
  refuseSharedStripeKey(features);
  const list = new StoreList(config.databases.map(({ name, url }): ListedStore => {
    const expected: ExpectedDatabase = { clusterId: null };
    const connections = PROCESS_LIMITS.poolConnectionsMax;
    return {
      name: name as string,
      database: openPostgres(url, connections, undefined, null, expected),
      expected,
    };
  }));
  await tryAll(list);
  const services: Service[] = [];
  for (const [place, store] of list.stores.entries()) {
    // Each follows the clock of its own database.
    const clock = systemClock();
    services.push(
      new Service(store.database, makeIdSource(clock), clock, features, {
        ...options,
        adminToken,
        network: once(() => openNetwork(portAfter(config, place), store.database)),
        share: shareOf(config),
        store: {
          name: store.name,
          names: list.names,
          beside: services[0] ?? null,
          open: () => list.open(store),
          plan: (to) => list.plan(store.name, to),
          endsProcess: () => stores.isStarting,
        },
      }),
    );
  }
  const stores: Stores = new Stores(services);
  const close = async () => {
    await Promise.all(list.stores.map(({ database }) => database.close()));
  };
  return { stores, close };
}

/** How long a start waits for its databases: one may be frozen, or take long to migrate, while the others are served. */
const TRY_MS = 15_000;

/** Opens every database once; refuses a wrong list, and a list without any database that can be served. */
async function tryAll(list: StoreList): Promise<void> {
  const opened = await Promise.allSettled(list.stores.map((store) => within(TRY_MS, list.open(store))));
  const faults = opened.flatMap((result, place) => {
    if (result.status === "fulfilled") return [];
    if (result.reason instanceof ConfigError) throw result.reason;
    return [{ store: list.stores[place]?.name ?? "", error: messageOf(result.reason) }];
  });
  if (faults.length === list.stores.length) {
    const texts = faults.map(({ store, error }) => `${store}: ${error}`).join("; ");
    throw new ConfigError(`Cannot start: HOLDFAST_DATABASES: no database can be served: ${texts}`);
  }
  for (const fault of faults) {
    log("warn", "A database cannot be served; its workspaces are answered 503", fault);
  }
}

/** A key of Stripe without an app is that of the only app with Stripe, which no database can know of all. */
function refuseSharedStripeKey({ stripe: { byMode } }: Features): void {
  for (const mode of ["live", "test"] as const) {
    if (!byMode[mode].has("")) continue;
    const name = `STRIPE_API_KEY_${mode.toUpperCase()}`;
    throw new ConfigError(`Cannot start: ${name} needs an app beside HOLDFAST_DATABASES: ${name}__<appId>`);
  }
}

function shareOf({ isFront }: Config): number {
  return isFront ? 0 : 1;
}

/** Opens something once; after a failure, once more. */
function once(open: () => Promise<Network | null>): () => Promise<Network | null> {
  let opened: Promise<Network | null> | null = null;
  return () =>
    opened ??= open().catch((error) => {
      opened = null;
      throw error;
    });
}
