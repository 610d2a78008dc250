// The doctor's verdicts: pure functions from facts to checks. Each check says what it found, and what to do about it where
// something is to be done.

import type {
  BacklogFacts,
  OldPrice,
  PriceChecks,
  StandbyFacts,
  UnhandledCount,
  WebhookFacts,
} from "../../storage/queries/store_facts.ts";
import type { DatabaseFacts, DriftFacts, LongFacts, StoreFacts } from "./facts.ts";
import type { Features } from "../../process/features.ts";
import { DOCTOR_LIMITS, RUNTIME_LIMITS } from "../../process/limits.ts";
import {
  type ClusterFacts,
  type ClusterView,
  isLiving,
  type NodeFacts,
  troublesOf,
} from "../../cluster/examine.ts";
import type { MigrationState } from "../../storage/migrate.ts";
import { SERVER_MAJOR_MIN } from "../../storage/server_probe.ts";

export type Verdict = "ok" | "warn" | "fail";

/** The result of one check: its subject, its finding, and advice. */
export interface Check {
  readonly name: string;
  readonly verdict: Verdict;
  readonly found: string;
  /** null if no action is needed. */
  readonly advice: string | null;
}

/** What the running term knows of itself. */
export interface TermFacts {
  readonly backlogChanges: number;
  readonly backlogBytes: number;
  readonly waitingChanges: number;
  readonly view: ClusterView;
}

const EVERYTHING = "Run deno task reconcile, which proves everything and names each drift";

/**
 * Every check of a store. A check whose trouble would cause that of another one comes first.
 *
 * @param term null where a process asks that does not serve
 */
export function checkStore(facts: StoreFacts, term: TermFacts | null): Check[] {
  const { database, migrations, cluster, skewMs, backlog, webhooks } = facts;
  const { unhandled, lateTopUps } = facts;
  const isServed = term !== null || cluster !== null && cluster.nodes.some(isLiving);
  return [
    checkDatabase(database),
    checkStandbys(database),
    checkMigrations(migrations),
    cluster === null ? unread("members") : checkMembers(database, cluster, term?.view ?? null),
    checkClock(skewMs),
    backlog === null ? unread("backlog") : checkBacklog(backlog, term, isServed),
    ...checkLong(facts),
    webhooks === null ? unread("webhooks") : checkWebhooks(webhooks),
    unhandled === null ? unread("stripe") : checkStripe(unhandled),
    lateTopUps === null ? unread("top-ups") : checkTopUps(lateTopUps),
  ];
}

/** The checks of the facts that take long; none where they were not read. */
export function checkLong({ drift, oldPrices, priceChecks = null }: Partial<LongFacts>): Check[] {
  if (drift === undefined || oldPrices === undefined) return [];
  return [
    drift === null ? unread("drift") : checkDrift(drift),
    oldPrices === null ? unread("prices") : checkPrices(oldPrices, priceChecks),
  ];
}

/** The worst verdict of some checks. */
export function worstOf(checks: readonly Check[]): Verdict {
  const verdicts = new Set(checks.map(({ verdict }) => verdict));
  return verdicts.has("fail") ? "fail" : verdicts.has("warn") ? "warn" : "ok";
}

export function ok(name: string, found: string): Check {
  return { name, verdict: "ok", found, advice: null };
}

export function warn(name: string, found: string, advice: string): Check {
  return { name, verdict: "warn", found, advice };
}

export function fail(name: string, found: string, advice: string): Check {
  return { name, verdict: "fail", found, advice };
}

function unread(name: string): Check {
  return warn(name, "skipped: migrations pending", "Apply the migrations first");
}

/** Which optional features are on. A service that stores people must be able to erase them, so a missing secret is a warning. */
export function checkFeatures(
  features: Pick<Features, "privacySecret" | "exportSecret" | "modelServer">,
): Check {
  const name = "features";
  const states = [
    ["erasure and opting out of analytics", features.privacySecret],
    ["export", features.exportSecret],
    ["compose", features.modelServer],
  ] as const;
  const found = states.map(([feature, value]) => `${feature} ${value === null ? "off" : "on"}`).join(", ");
  if (features.privacySecret !== null) return ok(name, found);
  return warn(name, found, "Set HOLDFAST_PRIVACY_SECRET: people may ask for their erasure");
}

/** Which gateways are on, whether catalogs name servers that there are not, and whether test keys spend real money. */
export function checkGateway(
  features: Pick<Features, "modelServer" | "anthropicServer" | "upstreams">,
  { openApps, namedServers }: Pick<StoreFacts, "openApps" | "namedServers">,
): Check {
  const name = "gateway";
  const { modelServer, anthropicServer, upstreams } = features;
  const state = (server: unknown) => server === null ? "off" : "on";
  const more = upstreams.map(({ name, server }) => `${name} ${server === null ? "without a key" : "on"}`);
  const found = [`for OpenAI ${state(modelServer)}`, `for Anthropic ${state(anthropicServer)}`, ...more].join(
    ", ",
  );
  const absent = namedServers?.find(({ upstream }) => upstreams.every(({ name }) => name !== upstream));
  if (absent !== undefined) {
    const { appId, upstream } = absent;
    return warn(
      name,
      `${found}; the catalog of ${appId} names the server "${upstream}", which this service lacks`,
      `Add "${upstream}" to HOLDFAST_UPSTREAMS: calls of its models are answered 501`,
    );
  }
  const isOn = [modelServer, anthropicServer, ...upstreams.map(({ server }) => server)].some((each) =>
    each !== null
  );
  const [first] = openApps ?? [];
  if (!isOn || first === undefined) return ok(name, found);
  return warn(
    name,
    `${found}; the catalog of ${first}${
      (openApps?.length ?? 0) > 1 ? " and of other apps" : ""
    } has no gateway`,
    "Test keys of such an app spend real money: set gateway in its catalog, {} to refuse them",
  );
}

function checkDatabase(facts: DatabaseFacts): Check {
  const { kind, version, roundTripMs, fsync, synchronousCommit } = facts;
  const name = "database";
  const where = kind === "embedded" ? "embedded" : "on a server";
  const found = `PostgreSQL ${version}, ${where}, ${roundTripMs.toFixed(1)} ms a round trip`;
  if (Number.parseInt(version) < SERVER_MAJOR_MIN) {
    return fail(name, found, `Move to PostgreSQL ${SERVER_MAJOR_MIN} or newer`);
  }
  if (!fsync || synchronousCommit === "off") {
    const settings = `fsync ${fsync ? "on" : "off"}, synchronous_commit ${synchronousCommit}`;
    return fail(
      name,
      `${found}, ${settings}`,
      "Set both to on: a crash of the server now loses answers given",
    );
  }
  if (roundTripMs > DOCTOR_LIMITS.roundTripWarnMs) {
    return warn(name, found, "Each request waits for a round trip: bring the process nearer to its database");
  }
  return checkCheckpoints(name, found, facts);
}

/** Whether a failover keeps every answer: only a synchronous standby has each commit before its answer. */
function checkStandbys({ kind, replication: { configured, names, standbys } }: DatabaseFacts): Check {
  const name = "standbys";
  if (kind === "embedded") return ok(name, "the embedded store has none");
  const setting = `synchronous_commit ${configured}`;
  const commits = ["off", "local"].includes(configured) ? `${setting}, raised to on` : setting;
  const listed = standbys.length === 0 ? "none" : standbys.map(standbyText).join(", ");
  const found = `${listed}; ${commits}; synchronous_standby_names ${names === "" ? "empty" : names}`;
  if (names === "") {
    if (standbys.length === 0) return ok(name, found);
    return warn(
      name,
      found,
      "A failover loses answers that a standby has not yet received: set synchronous_standby_names",
    );
  }
  const isHidden = standbys.some(({ syncState }) => syncState === null);
  if (isHidden || standbys.some(({ syncState }) => syncState === "sync" || syncState === "quorum")) {
    return ok(name, found);
  }
  return fail(
    name,
    found,
    "Every call waits for a synchronous standby: start it, or change synchronous_standby_names until it is back",
  );
}

function standbyText({ name, state, syncState }: StandbyFacts): string {
  if (state === null) return "one whose state this role may not see (grant pg_monitor)";
  return `${name} (${syncState}, ${state})`;
}

/** Where the log fills before it is time for a checkpoint, settings that leave it more room. */
function checkCheckpoints(name: string, found: string, { kind, checkpoints }: DatabaseFacts): Check {
  const { timed, requested, maxWalMegabytes, timeoutSeconds, compression } = checkpoints;
  const { logMegabytes, checkpointSeconds, checkpointsMin } = DOCTOR_LIMITS;
  const advice = [
    ...(maxWalMegabytes < logMegabytes ? [`max_wal_size to ${logMegabytes} MB`] : []),
    ...(timeoutSeconds < checkpointSeconds ? [`checkpoint_timeout to ${checkpointSeconds} s`] : []),
    ...(compression === "off" ? ["wal_compression to lz4"] : []),
  ];
  const isFull = requested > Math.max(timed, checkpointsMin);
  // The embedded store makes its checkpoints itself.
  if (kind === "embedded" || !isFull || advice.length === 0) return ok(name, found);
  return warn(
    name,
    `${found}, ${requested} of ${timed + requested} checkpoints because the log was full`,
    `Set ${
      advice.join(", ")
    }: after each checkpoint the first write to a page puts the whole page into the log`,
  );
}

function checkMigrations({ applied, missing, changed, unknown }: MigrationState): Check {
  const name = "migrations";
  if (changed.length > 0) {
    const advice = "Run the program that made these tables, or restore a backup";
    return fail(name, `applied with another text: ${changed.join(", ")}`, advice);
  }
  if (unknown.length > 0) {
    const found = `a newer program applied ${unknown.join(", ")}`;
    return fail(name, found, "Upgrade this program: it refuses to start on newer tables");
  }
  if (missing.length > 0) {
    return fail(name, `not applied: ${missing.join(", ")}`, "Start the service or run deno task migrate");
  }
  return ok(name, `all ${applied.length} applied`);
}

function checkMembers({ kind }: DatabaseFacts, facts: ClusterFacts, view: ClusterView | null): Check {
  const name = "members";
  const living = facts.nodes.filter((node) => isLiving(node) || node.term === view?.term);
  if (kind === "embedded") {
    if (view !== null) return ok(name, "this process has the data folder");
    return warn(name, "no process has the data folder", "Start the service");
  }
  if (living.length === 0) return warn(name, "no process serves this database", "Start the service");
  const troubles = troublesOf(facts, view);
  const [worst] = troubles;
  if (worst === undefined) return ok(name, living.map(memberText).join(", "));
  const found = troubles.map((trouble) => trouble.found).join("; ");
  return (worst.isBad ? fail : warn)(name, found, worst.advice);
}

function memberText({ term, address, share, cells }: NodeFacts): string {
  const has = share === 0 && cells.length === 0 ? "a front" : `${cells.length} cells`;
  return `${term} at ${address ?? "no address"} (${has})`;
}

function checkClock(skewMs: number): Check {
  const name = "clock";
  const size = Math.abs(skewMs);
  const found = `the process is ${size} ms ${skewMs < 0 ? "behind" : "ahead of"} its database`;
  const advice = "Run a time service (NTP) on both machines: windows and holds follow the process's clock";
  if (size > DOCTOR_LIMITS.skewFailMs) return fail(name, found, advice);
  return size > DOCTOR_LIMITS.skewWarnMs ? warn(name, found, advice) : ok(name, found);
}

function checkBacklog(facts: BacklogFacts, term: TermFacts | null, isServed: boolean): Check {
  const name = "backlog";
  const waiting = term === null
    ? `journal batches ${facts.journalBatches}`
    : `changes before the journal ${term.waitingChanges}, in it ${term.backlogChanges}`;
  const found = [
    waiting,
    `users overdue ${counted(facts.overdueUsers)}`,
    `histories to move ${counted(facts.historyMoves)}`,
    `erasures open ${facts.openErasures}`,
  ].join(", ");
  if (term !== null && fullness(term) >= 1) {
    return fail(
      name,
      found,
      "Calls are being refused: the database drains slower than calls arrive; look at its load",
    );
  }
  if (term !== null && fullness(term) >= 0.5) {
    return warn(name, found, "The database drains slower than calls arrive: look at its load");
  }
  if (isServed && facts.overdueUsers > 0) {
    return warn(
      name,
      found,
      "The sweeps are behind: run deno task sweep and look for their warnings in the log",
    );
  }
  if (isServed && facts.lateErasures > 0) {
    return warn(name, found, "Erasures wait for over an hour: look for their warnings in the log");
  }
  return ok(name, found);
}

/** How full the fullest bound of a term is; at 1 calls are refused or wait. */
function fullness({ backlogChanges, backlogBytes, waitingChanges }: TermFacts): number {
  return Math.max(
    backlogChanges / RUNTIME_LIMITS.backlogChangesMax,
    backlogBytes / RUNTIME_LIMITS.backlogBytesMax,
    waitingChanges / RUNTIME_LIMITS.waitingChangesMax,
  );
}

function counted(count: number): string {
  return count >= DOCTOR_LIMITS.countMax ? `${count} or more` : String(count);
}

/** Prices or webhooks that are named. */
const NAMED_MAX = 20;

/** Budgets in cents are as right as the prices are. */
function checkPrices(old: readonly OldPrice[], counts: PriceChecks | null): Check {
  const name = "prices";
  const days = DOCTOR_LIMITS.pricesOldMs / 86_400_000;
  if (counts !== null && counts.prices > 0 && counts.checked === 0) {
    return ok(name, `none of ${counts.prices} was ever checked against a price file`);
  }
  if (old.length === 0) return ok(name, `none was checked more than ${days} days ago`);
  const named = Map.groupBy(old.slice(0, NAMED_MAX), ({ appId }) => appId);
  const apps = [...named].map(([appId, rows]) => `${appId}: ${rows.map(({ model }) => model).join(", ")}`);
  if (old.length > NAMED_MAX) apps.push("and others");
  return warn(
    name,
    `${counted(old.length)} last checked more than ${days} days ago: ${apps.join("; ")}`,
    "Compare them with a new price file: deno task admin models import FILE --app APP --dry-run",
  );
}

function checkWebhooks({ enabled, failing, oldestMs }: WebhookFacts): Check {
  const name = "webhooks";
  const hours = DOCTOR_LIMITS.webhookLateMs / 3_600_000;
  const oldest = oldestMs === null
    ? "no pending message"
    : `the oldest message has been pending ${ageText(oldestMs)}`;
  const found = `enabled ${enabled}, ${oldest}`;
  const advice = "See what their endpoints answer: deno task admin webhooks messages WEBHOOK --app APP";
  if (failing.length > 0) {
    const named = failing.slice(0, NAMED_MAX).map(({ appId, webhookId, isDisabled }) =>
      `${webhookId} of ${appId}${isDisabled ? " (disabled)" : ""}`
    );
    if (failing.length > NAMED_MAX) named.push("and others");
    return warn(
      name,
      `${found}; endpoints that fail for over ${hours} h or were given up: ${named.join(", ")}`,
      advice,
    );
  }
  return oldestMs === null || oldestMs < DOCTOR_LIMITS.webhookLateMs
    ? ok(name, found)
    : warn(name, found, advice);
}

function checkStripe(counts: readonly UnhandledCount[]): Check {
  const name = "stripe";
  if (counts.length === 0) return ok(name, "no paid message is unhandled");
  return warn(
    name,
    `paid messages that are not handled: ${named(counts)}`,
    "See the reasons: deno task admin stripe unhandled --mode MODE --app APP",
  );
}

function checkTopUps(counts: readonly UnhandledCount[]): Check {
  const name = "top-ups";
  if (counts.length === 0) return ok(name, "none has been under way for a day");
  return warn(
    name,
    `under way for more than a day: ${named(counts)}`,
    "Look at their payments in Stripe; without a key of Stripe for the app and mode, none goes on",
  );
}

function named(counts: readonly UnhandledCount[]): string {
  const names = counts.slice(0, NAMED_MAX).map(({ appId, mode, messages }) => `${appId} ${mode} ${messages}`);
  if (counts.length > NAMED_MAX) names.push("and others");
  return names.join(", ");
}

/** A length of time in whole minutes, from two hours on in hours, and from two days on in days. */
function ageText(ms: number): string {
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 120) return minutes === 1 ? "1 minute" : `${minutes} minutes`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} hours` : `${Math.floor(hours / 24)} days`;
}

function checkDrift(facts: DriftFacts): Check {
  const name = "drift";
  if ("fault" in facts) return warn(name, `could not be proved: ${facts.fault}`, EVERYTHING);
  const { summary, first } = facts;
  const { users, counters, balances, drifts, isWhole } = summary;
  const scope = isWhole ? "everything" : "a sample";
  const looked = `${scope}: users ${users}, counters ${counters}, credit balances ${balances}`;
  if (drifts === 0) return ok(name, `none in ${looked}`);
  return fail(
    name,
    `${drifts} in ${looked}; first ${first}`,
    `${EVERYTHING}; do not change the database, and report it`,
  );
}
