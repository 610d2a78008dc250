// The registry: workspaces, apps, keys, catalogs and realms in memory, as the tables have them. It answers the two
// questions of every request, who is calling and under which catalog, without a query. Only the writer serves, and
// every change goes through the writer, so memory is never stale.

import { hashOf } from "../secrets/hash.ts";
import type { Realm } from "../../actors/actor.ts";
import type { Mode } from "../../actors/port.ts";
import { type Catalog, type CatalogDocument, compileCatalog } from "../domain/plans/catalog.ts";
import type { ModelDocument } from "../domain/pricing/price_row.ts";
import type { Millis } from "../domain/plans/period.ts";
import type { Clock } from "../process/clock.ts";
import { REQUEST_LIMITS } from "../process/limits.ts";

/** A workspace with its caps; null = no limit. */
export interface Workspace {
  readonly workspaceId: string;
  readonly name: string;
  readonly operationCap: number | null;
  readonly testOperationCap: number | null;
  readonly aiBudgetCents: number | null;
  readonly testCreditBalanceCap: number | null;
}

/** An identity secret that was rotated away. */
export interface OldIdentitySecret {
  readonly secret: string;
  /** Real time. */
  readonly validUntil: Millis;
}

/** An app as its rows say. */
export interface AppRecord {
  readonly appId: string;
  readonly workspaceId: string;
  readonly name: string;
  readonly identitySecret: string;
  readonly oldIdentitySecrets: readonly OldIdentitySecret[];
  readonly createdAt: Millis;
}

/** An API key; only its hash is known. */
export interface ApiKey {
  readonly keyId: string;
  readonly appId: string;
  readonly class: "secret" | "public";
  readonly mode: Mode;
  readonly hash: string;
  readonly prefix: string;
  readonly createdAt: Millis;
  readonly revokedAt: Millis | null;
}

/** A catalog in force. */
export interface AppliedCatalog {
  readonly appId: string;
  readonly version: number;
  readonly document: CatalogDocument;
  /** Every plan id ever added, oldest first. */
  readonly planOrder: readonly string[];
  /** Every price row that the app's catalogs ever had, each at its number. */
  readonly priceRows: readonly ModelDocument[];
}

/** A realm's row. */
export interface RealmRecord {
  readonly realm: number;
  readonly appId: string;
  readonly mode: Mode;
  readonly clockOffsetMs: number;
}

/** Everything that a registry starts from. */
export interface RegistryRows {
  readonly workspaces: readonly Workspace[];
  readonly apps: readonly AppRecord[];
  readonly keys: readonly ApiKey[];
  readonly catalogs: readonly AppliedCatalog[];
  readonly realms: readonly RealmRecord[];
}

/** An app in memory. */
export interface App {
  record: AppRecord;
  catalog: Catalog;
  applied: AppliedCatalog | null;
  readonly realms: Record<Mode, AppRealm>;
}

/** Who a request comes from. */
export interface Caller {
  readonly key: ApiKey;
  readonly app: App;
  readonly realm: AppRealm;
}

/** The secrets that sign valid end-user tokens of an app at a real moment, the newest one first. */
export function identitySecretsOf({ record }: App, nowMs: Millis): readonly string[] {
  const old = record.oldIdentitySecrets.filter(({ validUntil }) => validUntil > nowMs);
  return [record.identitySecret, ...old.map(({ secret }) => secret)];
}

/** One app in one mode, with its clock. */
export class AppRealm implements Realm {
  readonly realm: number;
  readonly mode: Mode;
  clockOffsetMs: number;
  readonly #registry: Registry;
  readonly #clock: Clock;
  app!: App;

  constructor(record: RealmRecord, registry: Registry, clock: Clock) {
    this.realm = record.realm;
    this.mode = record.mode;
    this.clockOffsetMs = record.clockOffsetMs;
    this.#registry = registry;
    this.#clock = clock;
  }

  now(): Millis {
    return this.#clock.now() + this.clockOffsetMs;
  }

  get catalog(): Catalog {
    return this.app.catalog;
  }

  get caps(): Workspace {
    return this.#registry.workspaces.get(this.app.record.workspaceId) as Workspace;
  }
}

const NO_CATALOG = compileCatalog({}, 0);

/** The registry of a term. */
export class Registry {
  readonly workspaces = new Map<string, Workspace>();
  readonly apps = new Map<string, App>();
  readonly keys = new Map<string, ApiKey>();
  readonly realms = new Map<number, AppRealm>();
  readonly #clock: Clock;
  readonly #keysByHash = new Map<string, ApiKey>();
  readonly #callers = new Map<string, Caller>();
  #origins: ReadonlySet<string> | null = null;

  constructor(rows: RegistryRows, clock: Clock) {
    this.#clock = clock;
    for (const workspace of rows.workspaces) this.workspaces.set(workspace.workspaceId, workspace);
    const realms = Map.groupBy(rows.realms, ({ appId }) => appId);
    for (const record of rows.apps) this.addApp(record, realms.get(record.appId) ?? []);
    for (const applied of rows.catalogs) this.setCatalog(applied);
    for (const key of rows.keys) this.setKey(key);
  }

  /** The caller that a presented key stands for, or null when it is unknown or revoked. */
  authenticate(presented: string): Caller | null {
    const cached = this.#callers.get(presented);
    if (cached !== undefined) return cached;
    const key = this.#keysByHash.get(hashOf(presented));
    const app = key === undefined || key.revokedAt !== null ? undefined : this.apps.get(key.appId);
    if (key === undefined || app === undefined) return null;
    const caller = { key, app, realm: app.realms[key.mode] };
    if (this.#callers.size >= REQUEST_LIMITS.keysCachedMax) this.#callers.clear();
    this.#callers.set(presented, caller);
    return caller;
  }

  /** Adds an app with its two realms. */
  addApp(record: AppRecord, realms: readonly RealmRecord[]): void {
    const [live, test] = (["live", "test"] as const).map((mode) => {
      const row = realms.find((realm) => realm.mode === mode);
      if (row === undefined) throw new Error(`The app "${record.appId}" has no realm for mode "${mode}"`);
      return new AppRealm(row, this, this.#clock);
    }) as [AppRealm, AppRealm];
    const app: App = { record, catalog: NO_CATALOG, applied: null, realms: { live, test } };
    this.apps.set(record.appId, app);
    for (const realm of [live, test]) {
      realm.app = app;
      this.realms.set(realm.realm, realm);
    }
  }

  /** Every origin that some app lists. */
  get origins(): ReadonlySet<string> {
    return this.#origins ??= new Set(
      [...this.apps.values()].flatMap(({ catalog }) => [...catalog.corsOrigins]),
    );
  }

  /** Puts a catalog in force from the next request on. */
  setCatalog(applied: AppliedCatalog): void {
    const app = this.apps.get(applied.appId);
    if (app === undefined) return;
    app.applied = applied;
    this.#origins = null;
    app.catalog = compileCatalog(applied.document, applied.version, applied.priceRows);
  }

  /** Adds a key or its revocation, which holds at once. */
  setKey(key: ApiKey): void {
    this.keys.set(key.keyId, key);
    this.#keysByHash.set(key.hash, key);
    this.#callers.clear();
  }
}
