// Changes of an app's catalogs: of both modes, of test mode alone, and back to one for both. Whatever changes, the document
// that a mode gets is checked against the one that it replaces, and may not lack a plan or pack that users of the mode have.

import type { Mode } from "../../actors/port.ts";
import { compileCatalog } from "../domain/catalog/catalog.ts";
import { withPriceRows } from "../domain/catalog/price_row.ts";
import { withRateRows } from "../domain/catalog/rate_row.ts";
import { type Refusal, refusal } from "../domain/values/refusal.ts";
import { inTurn } from "../process/in_turn.ts";
import type { AppliedCatalog, RegistryRows } from "../storage/rows/registry_rows.ts";
import {
  countUsersOn,
  keepVersion,
  packsInUse,
  plansInUse,
  type RealmMoment,
} from "../storage/stores/catalog_store.ts";
import type { AdminWorld } from "./admin.ts";
import { type CatalogChange, changedPlans, diffCatalogs } from "./catalog/changes.ts";
import { checkCatalog } from "./catalog/check.ts";
import type { CatalogInput } from "./catalog/schema.ts";
import { type App, type AppRealm, hasTestCatalog, longerRows } from "./registry.ts";

/** How to apply a catalog. */
export interface ApplyOptions {
  /** "test": for test mode alone. "live": for live mode, and for test mode while it has no catalog of its own. */
  readonly mode: Mode;
  /** Reports what would change, and changes nothing. */
  readonly isDryRun: boolean;
  /** The version that the document was made from; refused when another one is in force. Null: any version. */
  readonly expectedVersion: number | null;
  /** The name of an operator, or "api". */
  readonly who: string;
}

/** A change that was made, or that a dry run found. */
export interface AppliedChange {
  /** The version in force after it. */
  readonly version: number;
  readonly changes: CatalogChange[];
  /** In a dry run: how many users have an active subscription to a plan that changes; null for too many to count. */
  readonly usersAffected?: Readonly<Record<Mode, number | null>>;
}

/** The document that some realms of an app get, and what it replaces. */
interface Replacement {
  /** Realms with the same current document. */
  readonly realms: readonly AppRealm[];
  readonly document: CatalogInput;
  readonly changes: CatalogChange[];
}

const BY_API: ApplyOptions = { mode: "live", isDryRun: false, expectedVersion: null, who: "api" };

/** Applies a catalog document, or reports what would change. Refused as a whole when any part is invalid. */
export async function applyCatalog(
  world: AdminWorld,
  app: App,
  document: unknown,
  options: Partial<ApplyOptions> = {},
): Promise<AppliedChange | Refusal> {
  const { mode, isDryRun, expectedVersion, who } = { ...BY_API, ...options };
  const { live, test } = app.realms;
  return await inTurn(world.registry, async () => {
    const realm = app.realms[mode];
    const realms = mode === "test" ? [test] : hasTestCatalog(app) ? [live] : [live, test];
    // Within the turn: units are compared with the catalog in force, which another call may replace.
    const replacement = await checkReplacement(realms, document, "Catalog is invalid");
    if ("code" in replacement) return replacement;
    const version = realm.applied?.version ?? 0;
    if (expectedVersion !== null && expectedVersion !== version) {
      return await movedCatalog(world, version, expectedVersion);
    }
    const { changes } = replacement;
    return await replacing(world, replacement, async () => {
      if (isDryRun) {
        return { version, changes, usersAffected: await countAffected(world, app, replacement) };
      }
      // A first catalog of test mode is one of its own, also where it is equal to that of live mode.
      if (changes.length === 0 && (mode === "live" || hasTestCatalog(app))) {
        await world.changes.confirm();
        return { version, changes };
      }
      return await write(world, app, replacement, { mode, who }, []);
    });
  });
}

/** How to promote the catalog of test mode. */
type PromoteOptions = Pick<ApplyOptions, "expectedVersion" | "who">;

/** Applies the catalog of test mode to both modes, as a new version. */
export async function promoteCatalog(
  world: AdminWorld,
  app: App,
  { expectedVersion, who }: PromoteOptions,
): Promise<AppliedChange | Refusal> {
  return await inTurn(world.registry, async () => {
    const { live, test } = app.realms;
    if (!hasTestCatalog(app) || test.applied === null) {
      await world.changes.confirm();
      return refusal("not_found", "Test mode has no catalog of its own");
    }
    const { version, document } = test.applied;
    if (expectedVersion !== null && expectedVersion !== version) {
      return await movedCatalog(world, version, expectedVersion);
    }
    const what = "The catalog of test mode cannot replace the one of live mode";
    const replacement = await checkReplacement([live], document, what);
    if ("code" in replacement) return replacement;
    return await replacing(
      world,
      replacement,
      () =>
        write(world, app, replacement, { mode: "live", who }, [tombstoneOf(test.applied as AppliedCatalog)]),
    );
  });
}

/** Returns test mode to the catalog of live mode. Without a catalog of its own nothing changes. */
export async function dropTestCatalog(world: AdminWorld, app: App): Promise<AppliedChange | Refusal> {
  return await inTurn(world.registry, async () => {
    const { live, test } = app.realms;
    const version = live.applied?.version ?? 0;
    if (!hasTestCatalog(app) || test.applied === null) {
      await world.changes.confirm();
      return { version, changes: [] };
    }
    const what = "The catalog of live mode cannot replace the one of test mode";
    const replacement = await checkReplacement([test], live.applied?.document ?? {}, what);
    if ("code" in replacement) return replacement;
    const rows = { catalogs: [tombstoneOf(test.applied)] };
    const { changes } = replacement;
    return await replacing(
      world,
      replacement,
      () => world.changes.change(app.cell, () => ({ rows, answer: { version, changes } })),
    );
  });
}

/** Checks a document against the one that it replaces. */
async function checkReplacement(
  realms: readonly AppRealm[],
  document: unknown,
  what: string,
): Promise<Replacement | Refusal> {
  const inForce = realms[0]?.applied?.document ?? null;
  const checked = await checkCatalog(document, inForce);
  if ("faults" in checked) return refusal("invalid_request", what, checked.faults);
  return { realms, document: checked.catalog, changes: diffCatalogs(inForce ?? {}, checked.catalog) };
}

/** A refusal. The call may be a retry after a lost answer, so it too waits until every process has the version. */
async function movedCatalog(world: AdminWorld, version: number, expected: number): Promise<Refusal> {
  await world.changes.confirm();
  const message = `Catalog changed: current version is ${version}, expectedVersion is ${expected}`;
  return refusal("catalog_in_use", message, { version });
}

/** Replaces a catalog unless a user has a plan or pack that is being removed. */
async function replacing(
  world: AdminWorld,
  { realms, document }: Replacement,
  replace: () => Promise<AppliedChange>,
): Promise<AppliedChange | Refusal> {
  const before = realms.map(({ catalog, applied }) => ({ catalog, applied }));
  const removed = removedParts(realms[0]?.applied ?? null, document);
  // From here on no user gets a plan or pack that is being removed; the flush then shows every user who has one.
  closeParts(realms, removed);
  try {
    return await findInUse(world, realms, removed) ?? await replace();
  } finally {
    // The catalog with closed parts is replaced when no new one was put in force.
    for (const [place, realm] of realms.entries()) {
      const { catalog, applied } = before[place] as (typeof before)[number];
      if (realm.applied === applied) realm.catalog = catalog;
    }
  }
}

/** Ids of plans and packs that a new catalog no longer has. */
interface RemovedParts {
  readonly plans: readonly string[];
  readonly packs: readonly string[];
}

/** Refuses a catalog that lacks a plan or pack in use; null when none is. */
async function findInUse(
  world: AdminWorld,
  realms: readonly AppRealm[],
  { plans, packs }: RemovedParts,
): Promise<Refusal | null> {
  if (plans.length === 0 && packs.length === 0) return null;
  await world.term.flush();
  const moments = realms.map(momentOf);
  const inUse = {
    plans: plans.length === 0 ? [] : await plansInUse(world.database, moments, plans),
    packs: packs.length === 0 ? [] : await packsInUse(world.database, moments, packs),
  };
  const faults = [
    ...inUse.plans.length === 0 ? [] : [`plans with active subscriptions: ${inUse.plans.join(", ")}`],
    ...inUse.packs.length === 0 ? [] : [`packs with live balances: ${inUse.packs.join(", ")}`],
  ];
  if (faults.length === 0) return null;
  return refusal("catalog_in_use", `Cannot be removed, only archived: ${faults.join("; ")}`, [
    ...inUse.plans.map((planId) => ({ planId })),
    ...inUse.packs.map((packId) => ({ packId })),
  ]);
}

function momentOf(realm: AppRealm): RealmMoment {
  return { realm: realm.realm, now: realm.now() };
}

function closeParts(realms: readonly AppRealm[], { plans, packs }: RemovedParts): void {
  const [first] = realms;
  if (first === undefined || first.applied === null || plans.length === 0 && packs.length === 0) return;
  const { document, version } = first.applied;
  const { priceRows, rateRows } = rowsOf(first.app);
  const closed = <Part extends { id: string; archived?: boolean | undefined }>(
    parts: readonly Part[] | undefined,
    ids: readonly string[],
  ) => (parts ?? []).map((part) => ({ ...part, archived: part.archived === true || ids.includes(part.id) }));
  const catalog = compileCatalog(
    { ...document, plans: closed(document.plans, plans), packs: closed(document.packs, packs) },
    version,
    priceRows,
    rateRows,
  );
  for (const realm of realms) realm.catalog = catalog;
}

function removedParts(inForce: AppliedCatalog | null, next: CatalogInput): RemovedParts {
  const removed = (before: readonly { id: string }[] = [], after: readonly { id: string }[] = []) => {
    const left = new Set(after.map(({ id }) => id));
    return before.map(({ id }) => id).filter((id) => !left.has(id));
  };
  return {
    plans: removed(inForce?.document.plans, next.plans),
    packs: removed(inForce?.document.packs, next.packs),
  };
}

/** Writes a document as a new version of a mode, with what else changes by it. */
async function write(
  world: AdminWorld,
  app: App,
  { document, changes }: Replacement,
  { mode, who }: Pick<ApplyOptions, "mode" | "who">,
  others: RegistryRows["catalogs"],
): Promise<AppliedChange> {
  return await world.changes.change(app.cell, async (session) => {
    const applied = nextCatalog(app, mode, document);
    const { appId, version } = applied;
    const kept = { appId, version, mode, at: world.clock.now(), who, changes };
    await keepVersion(session, kept, document);
    return { rows: { catalogs: [applied, ...others] }, answer: { version, changes } };
  });
}

function nextCatalog(app: App, mode: Mode, document: CatalogInput): AppliedCatalog {
  const known = app.realms[mode].applied?.planOrder ?? [];
  const added = (document.plans ?? []).map(({ id }) => id).filter((id) => !known.includes(id));
  const { priceRows, rateRows } = rowsOf(app);
  return {
    appId: app.record.appId,
    mode,
    version: 1 + Math.max(0, ...[...app.catalogs.values()].map(({ version }) => version)),
    document,
    planOrder: [...known, ...added],
    priceRows: withPriceRows(priceRows, document.models ?? []),
    rateRows: withRateRows(rateRows, document.rates ?? []),
    removed: false,
  };
}

/** Every numbered row of an app. */
function rowsOf({ catalogs }: App) {
  return [...catalogs.values()].reduce(longerRows, { priceRows: [], rateRows: [] });
}

/** What stays of a catalog of test mode: its version, and the numbers of its rows, which holds have. */
function tombstoneOf(applied: AppliedCatalog): AppliedCatalog {
  return { ...applied, document: {}, planOrder: [], removed: true };
}

async function countAffected(
  world: AdminWorld,
  app: App,
  { realms, document }: Replacement,
): Promise<Record<Mode, number | null>> {
  const planIds = changedPlans(realms[0]?.applied?.document ?? {}, document);
  if (planIds.length === 0) return { live: 0, test: 0 };
  await world.term.flush();
  const count = (realm: AppRealm) =>
    realms.includes(realm) ? countUsersOn(world.database, momentOf(realm), planIds) : 0;
  return { live: await count(app.realms.live), test: await count(app.realms.test) };
}
