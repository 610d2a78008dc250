// The registry: workspaces, apps, keys, catalogs and realms in memory, a copy of the tables. Every process has all of it,
// so that a request needs no query to find its caller, catalog and cell. Each change raises a version, and a change is
// answered only when every process has that version (registry_changes.ts).

import { hashOf } from "../process/secrets/hash.ts";
import type { Realm } from "../../actors/call.ts";
import { CELLS } from "../../actors/doors.ts";
import type { CellParts, Mode } from "../../actors/port.ts";
import type { Outbox } from "../domain/state/outbox.ts";
import { type Catalog, compileCatalog } from "../domain/catalog/catalog.ts";
import type { Millis } from "../domain/values/period.ts";
import type { Clock } from "../process/clock.ts";
import { REQUEST_LIMITS } from "../process/limits.ts";
import type {
  ApiKey,
  AppliedCatalog,
  AppRecord,
  RealmRecord,
  RegistryRows,
  StripeConnection,
  Webhook,
  Workspace,
} from "../storage/rows/registry_rows.ts";
import { cellOf } from "./cell_of.ts";
import {
  passedKeyId,
  prefixOfUserKey,
  type PresentedKey,
  readKeyText,
  readPassedKeyId,
} from "./end_user_key.ts";

/** An app in memory. */
export interface App {
  /** The cell of its workspace. */
  readonly cell: number;
  record: AppRecord;
  /** The rows of its catalogs. `realms` has the one that is in force in each mode. */
  readonly catalogs: Map<Mode, AppliedCatalog>;
  readonly realms: Record<Mode, AppRealm>;
  /** By id, oldest first. */
  readonly webhooks: Map<string, Webhook>;
  readonly stripe: Map<Mode, StripeConnection>;
}

/** The key of a caller. */
export type CallerKey = Pick<ApiKey, "keyId" | "mode"> & { readonly class: ApiKey["class"] | "user" };

/** The caller of a request. */
export interface Caller {
  readonly key: CallerKey;
  readonly app: App;
  readonly realm: AppRealm;
  /** The key of a user, which the owner of the cell has to check; null with an API key of the app. */
  readonly ofUser: PresentedKey | null;
}

/** A caller with the end of its key, and the time of its first use since uses were stored. */
interface KnownCaller extends Caller {
  /** Real time; Infinity for a key without an end. */
  readonly validUntil: Millis;
  /** Real time; 0 if it was not used. */
  usedAt: Millis;
}

/** Whether an operator of the console acts for the app, with no key of it. */
export function isOperated({ key }: Caller): boolean {
  return OPERATED.test(key.keyId);
}

/** The secrets that sign valid end-user tokens of an app at a real moment, the newest one first. */
export function identitySecretsOf({ record }: App, nowMs: Millis): readonly string[] {
  const old = record.oldIdentitySecrets.filter(({ validUntil }) => validUntil > nowMs);
  return [record.identitySecret, ...old.map(({ secret }) => secret)];
}

const NO_CATALOG = compileCatalog({}, 0);

/** One app in one mode, with its clock. */
export class AppRealm implements Realm {
  readonly realm: number;
  readonly mode: Mode;
  /** How far a test clock is ahead of real time; set when a process takes the cell. */
  clockOffsetMs = 0;
  outbox: Outbox | null = null;
  /** The catalog in force in this mode: every reader of a catalog reads it here. */
  catalog: Catalog = NO_CATALOG;
  /** Its document; null before the first catalog. That of live mode where test mode has none of its own. */
  applied: AppliedCatalog | null = null;
  readonly #registry: Registry;
  readonly #clock: Clock;
  app!: App;

  constructor(record: RealmRecord, registry: Registry, clock: Clock) {
    this.realm = record.realm;
    this.mode = record.mode;
    this.#registry = registry;
    this.#clock = clock;
  }

  now(): Millis {
    return this.#clock.now() + this.clockOffsetMs;
  }

  get cell(): number {
    return this.app.cell;
  }

  get caps(): Workspace {
    return this.#registry.workspaces.get(this.app.record.workspaceId) as Workspace;
  }
}

/** The form of the key id under which an operator of the console acts for an app. */
const OPERATED = /^console:([^:]+):(live|test)$/;

/** Whether test mode has a catalog of its own. */
export function hasTestCatalog({ catalogs }: App): boolean {
  return catalogs.get("test")?.removed === false;
}

/** Puts the catalogs of an app in force after one has changed: of live mode, and of test mode that has its own or the same. */
function putInForce({ catalogs, realms: { live, test } }: App, changed: Mode): void {
  const [ofLive, ofTest] = [catalogs.get("live") ?? null, catalogs.get("test") ?? null];
  if (changed === "live" && ofLive !== null) {
    live.applied = ofLive;
    live.catalog = compiled(ofLive, ofLive);
  }
  test.applied = ofTest?.removed === false ? ofTest : ofLive;
  // Holds of test mode may have numbers of rows that only its own catalog had.
  const isShared = test.applied === ofLive &&
    (ofTest === null || ofLive !== null && isBeginning(ofTest, ofLive));
  test.catalog = isShared ? live.catalog : compiled(test.applied ?? NO_ROWS, ofTest ?? NO_ROWS);
}

type NumberedRows = Pick<AppliedCatalog, "priceRows" | "rateRows">;

const NO_ROWS = { document: {}, version: 0, priceRows: [], rateRows: [] };

/** Compiles a document with the longer lists of two rows: the shorter list is the beginning of the longer one. */
function compiled(
  applied: Pick<AppliedCatalog, "document" | "version"> & NumberedRows,
  other: NumberedRows,
): Catalog {
  const { priceRows, rateRows } = longerRows(applied, other);
  return compileCatalog(applied.document, applied.version, priceRows, rateRows);
}

/** Whether a catalog has every numbered row of another one. */
function isBeginning(one: NumberedRows, other: NumberedRows): boolean {
  return one.priceRows.length <= other.priceRows.length && one.rateRows.length <= other.rateRows.length;
}

/** Every numbered row of an app. Its catalogs number their rows in one list; each catalog stores a beginning of it. */
export function longerRows(one: NumberedRows, other: NumberedRows): NumberedRows {
  const longer = <Row>(a: readonly Row[], b: readonly Row[]) => a.length >= b.length ? a : b;
  return {
    priceRows: longer(one.priceRows, other.priceRows),
    rateRows: longer(one.rateRows, other.rateRows),
  };
}

const NOTHING: RegistryRows = {
  workspaces: [],
  apps: [],
  keys: [],
  catalogs: [],
  realms: [],
  webhooks: [],
  stripe: [],
  moved: [],
};

/** The registry of a term. */
export class Registry {
  readonly workspaces = new Map<string, Workspace>();
  readonly apps = new Map<string, App>();
  readonly keys = new Map<string, ApiKey>();
  readonly realms = new Map<number, AppRealm>();
  /** Called with each webhook that was added, changed or removed. */
  onWebhook: (webhook: Webhook) => void = () => {};
  readonly #clock: Clock;
  readonly #keysByHash = new Map<string, ApiKey>();
  readonly #callers = new Map<string, KnownCaller>();
  /** Callers by key id, for calls that another process has admitted. */
  readonly #callersById = new Map<string, KnownCaller>();
  /** Uses of keys that changed since. */
  readonly #earlierUses = new Map<string, Millis>();
  readonly #cells = Array.from({ length: CELLS }, () => ({
    workspaces: new Set<string>(),
    realms: new Set<number>(),
  }));
  #origins: ReadonlySet<string> | null = null;
  /** The names of the stores that serve moved cells, by cell. */
  readonly #moved = new Map<number, string>();
  #version = -1;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The version in force in this process; -1 before the first read. */
  get version(): number {
    return this.#version;
  }

  /**
   * Puts rows in force from the next request on. Ignores a read that is older than the version in force, which could bring
   * a revoked key back. What another store serves is left out, and forgotten: it is found there alone.
   *
   * @param version of the registry with these rows, all earlier ones included
   */
  admit(rows: Partial<RegistryRows>, version: number): void {
    if (version <= this.#version) return;
    const { workspaces, apps, keys, catalogs, realms, webhooks, stripe, moved } = { ...NOTHING, ...rows };
    for (const { cell, store } of moved) this.#move(cell, store);
    for (const workspace of workspaces) {
      const cell = cellOf(workspace.workspaceId);
      if (this.#moved.has(cell)) continue;
      this.workspaces.set(workspace.workspaceId, workspace);
      this.#cells[cell]?.workspaces.add(workspace.workspaceId);
    }
    const realmsByApp = Map.groupBy(realms, ({ appId }) => appId);
    for (const record of apps) {
      const known = this.apps.get(record.appId);
      if (known !== undefined) known.record = record;
      else if (!this.#moved.has(cellOf(record.workspaceId))) {
        this.#addApp(record, realmsByApp.get(record.appId) ?? []);
      }
    }
    for (const applied of catalogs) this.#setCatalog(applied);
    for (const key of keys) if (this.apps.has(key.appId)) this.#setKey(key);
    for (const webhook of webhooks) this.#setWebhook(webhook);
    for (const connection of stripe) this.#setStripe(connection);
    this.#version = version;
  }

  /** Whether another store serves a cell. */
  isMoved(cell: number): boolean {
    return this.#moved.has(cell);
  }

  /** The names of the stores that serve cells of this one. */
  get heirs(): ReadonlySet<string> {
    return new Set(this.#moved.values());
  }

  /** Forgets what is in a cell: another store serves it from now on. */
  #move(cell: number, store: string): void {
    if (this.#moved.has(cell)) return;
    this.#moved.set(cell, store);
    const { workspaces, realms } = this.partsOf(cell);
    for (const workspaceId of workspaces) this.workspaces.delete(workspaceId);
    for (const realm of realms) {
      this.apps.delete(this.realms.get(realm)?.app.record.appId as string);
      this.realms.delete(realm);
    }
    for (const [keyId, { appId, hash }] of this.keys) {
      if (this.apps.has(appId)) continue;
      this.keys.delete(keyId);
      this.#keysByHash.delete(hash);
    }
    for (const [keyId, at] of this.uses) this.#earlierUses.set(keyId, at);
    this.#callers.clear();
    this.#callersById.clear();
    this.#origins = null;
    this.#cells[cell] = { workspaces: new Set(), realms: new Set() };
  }

  /** The workspaces and realms of a cell. */
  partsOf(cell: number): CellParts {
    return this.#cells[cell] as CellParts;
  }

  /**
   * Returns the caller of an API key, or null when the key is unknown, revoked or past its time. That of a user's key is returned
   * unchecked: only the owner of its cell knows the keys of users.
   */
  authenticate(presented: string): Caller | null {
    const cached = this.#callers.get(presented);
    if (cached !== undefined) return this.#used(cached);
    const key = this.#keysByHash.get(hashOf(presented));
    if (key === undefined) return this.#callerOfUser(readKeyText(presented));
    const app = key.revokedAt !== null ? undefined : this.apps.get(key.appId);
    if (app === undefined) return null;
    const caller = this.#callerOf(key, app);
    if (this.#callers.size >= REQUEST_LIMITS.keysCachedMax) this.#callers.clear();
    this.#callers.set(presented, caller);
    return this.#used(caller);
  }

  /** Notes that a key was used; returns null where its time is over. */
  #used(caller: KnownCaller): Caller | null {
    if (!this.#isInTime(caller)) return null;
    if (caller.usedAt === 0) caller.usedAt = this.#clock.now();
    return caller;
  }

  #isInTime({ validUntil }: KnownCaller): boolean {
    return validUntil === Infinity || validUntil > this.#clock.now();
  }

  /** Whether a key is neither revoked nor past its time. */
  isValid({ revokedAt, validUntil }: Pick<ApiKey, "revokedAt" | "validUntil">): boolean {
    return revokedAt === null && (validUntil === null || validUntil > this.#clock.now());
  }

  /** The keys that were used since `takeUses`, with the real time of the first of these uses. */
  get uses(): Map<string, Millis> {
    const used = [...this.#callersById.values()].filter(({ usedAt }) => usedAt > 0);
    return new Map([...this.#earlierUses, ...used.map(({ key, usedAt }) => [key.keyId, usedAt] as const)]);
  }

  /** Returns the uses, and forgets them. */
  takeUses(): Map<string, Millis> {
    const { uses } = this;
    for (const caller of this.#callersById.values()) caller.usedAt = 0;
    this.#earlierUses.clear();
    return uses;
  }

  /** Names the key that a caller presents, also a revoked one; null for one that no app ever had. */
  keyNamed(
    presented: string,
  ): { readonly app: App; readonly key: CallerKey; readonly prefix: string } | null {
    const key = this.#keysByHash.get(hashOf(presented));
    const app = key === undefined ? undefined : this.apps.get(key.appId);
    if (key !== undefined && app !== undefined) return { app, key, prefix: key.prefix };
    const ofUser = readKeyText(presented);
    const realm = ofUser === null ? undefined : this.realms.get(ofUser.realm);
    if (ofUser === null || realm?.mode !== ofUser.mode) return null;
    const named = { keyId: ofUser.id, class: "user", mode: ofUser.mode } as const;
    return { app: realm.app, key: named, prefix: prefixOfUserKey(presented) };
  }

  /** Returns the caller of a key that another process has admitted, or null when it is unknown or revoked here. */
  callerById(keyId: string): Caller | null {
    const cached = this.#callersById.get(keyId);
    if (cached !== undefined) return this.#isInTime(cached) ? cached : null;
    const operated = OPERATED.exec(keyId);
    if (operated !== null) return this.operatorOf(operated[1] as string, operated[2] as Mode);
    const ofUser = readPassedKeyId(keyId);
    if (ofUser !== null) return this.#callerOfUser(ofUser);
    const key = this.keys.get(keyId);
    const app = key === undefined || !this.isValid(key) ? undefined : this.apps.get(key.appId);
    return key === undefined || app === undefined ? null : this.#callerOf(key, app);
  }

  /** An operator of the console, who acts for an app and mode as with a secret key; null for an unknown app. */
  operatorOf(appId: string, mode: Mode): Caller | null {
    const app = this.apps.get(appId);
    if (app === undefined) return null;
    const keyId = `console:${appId}:${mode}`;
    return this.#callerOf({ keyId, class: "secret", mode, validUntil: null }, app);
  }

  /** Returns the caller of a user's key; null if it names no realm. */
  #callerOfUser(ofUser: PresentedKey | null): Caller | null {
    const realm = ofUser === null ? undefined : this.realms.get(ofUser.realm);
    if (ofUser === null || realm === undefined || realm.mode !== ofUser.mode) return null;
    const key = { keyId: passedKeyId(ofUser), class: "user", mode: ofUser.mode } as const;
    return { key, app: realm.app, realm, ofUser };
  }

  /** Returns the caller of a key; the same object for a key and for its id. */
  #callerOf(key: CallerKey & Pick<ApiKey, "validUntil">, app: App): KnownCaller {
    const known = this.#callersById.get(key.keyId);
    if (known !== undefined) return known;
    const validUntil = key.validUntil ?? Infinity;
    const caller = { key, app, realm: app.realms[key.mode], ofUser: null, validUntil, usedAt: 0 };
    this.#callersById.set(key.keyId, caller);
    return caller;
  }

  /** Adds an app with its two realms. */
  #addApp(record: AppRecord, realms: readonly RealmRecord[]): void {
    const [live, test] = (["live", "test"] as const).map((mode) => {
      const row = realms.find((realm) => realm.mode === mode);
      if (row === undefined) throw new Error(`The app "${record.appId}" has no realm for mode "${mode}"`);
      return new AppRealm(row, this, this.#clock);
    }) as [AppRealm, AppRealm];
    const cell = cellOf(record.workspaceId);
    const app: App = {
      cell,
      record,
      catalogs: new Map(),
      realms: { live, test },
      webhooks: new Map(),
      stripe: new Map(),
    };
    this.apps.set(record.appId, app);
    for (const realm of [live, test]) {
      realm.app = app;
      this.realms.set(realm.realm, realm);
      this.#cells[cell]?.realms.add(realm.realm);
    }
  }

  /** Every origin that any app allows. */
  get origins(): ReadonlySet<string> {
    return this.#origins ??= new Set(
      [...this.realms.values()].flatMap(({ catalog }) => [...catalog.corsOrigins]),
    );
  }

  #setCatalog(row: AppliedCatalog): void {
    const app = this.apps.get(row.appId);
    const known = app?.catalogs.get(row.mode);
    if (app === undefined || known?.version === row.version && known.removed === row.removed) return;
    app.catalogs.set(row.mode, row);
    this.#origins = null;
    putInForce(app, row.mode);
  }

  /** Adds, changes or removes a webhook; in force for messages of its realm from the next turn on. */
  #setWebhook(webhook: Webhook): void {
    const app = this.apps.get(webhook.appId);
    if (app === undefined) return;
    if (webhook.removed) app.webhooks.delete(webhook.webhookId);
    else app.webhooks.set(webhook.webhookId, webhook);
    const { appId, mode } = webhook;
    const listeners = [...app.webhooks.values()].filter((row) => row.mode === mode && !row.disabled);
    app.realms[mode].outbox = listeners.length === 0 ? null : { appId, mode, listeners };
    this.onWebhook(webhook);
  }

  #setStripe(connection: StripeConnection): void {
    const app = this.apps.get(connection.appId);
    if (connection.removed) app?.stripe.delete(connection.mode);
    else app?.stripe.set(connection.mode, connection);
  }

  /** Adds a key, or revokes it or sets its end at once. */
  #setKey(key: ApiKey): void {
    const known = this.keys.get(key.keyId);
    if (known?.revokedAt === key.revokedAt && known.validUntil === key.validUntil) return;
    this.keys.set(key.keyId, key);
    this.#keysByHash.set(key.hash, key);
    const usedAt = this.#callersById.get(key.keyId)?.usedAt ?? 0;
    if (usedAt > 0) this.#earlierUses.set(key.keyId, usedAt);
    this.#callersById.delete(key.keyId);
    if (known !== undefined) this.#callers.clear();
  }
}
