// The calls about aliases: alias, its batch and customer. A merge rewrites every row of `from` to belong to the
// canonical user of `to`; a dry run is a merge in a throwaway copy of the world. Subscriptions and usage are in
// merge_usage.ts, credits in merge_credits.ts.

import { inTurn } from "./alerts.ts";
import { isId } from "./checks.ts";
import {
  ANYTHING,
  EITHER,
  type Input,
  type ModelReply,
  oneOf,
  refusal,
  type RefusalCode,
  success,
  type WireData,
} from "./document.ts";
import { ZERO } from "./decimal.ts";
import { mergeCredits } from "./merge_credits.ts";
import { mergeEntered, mergeSubscriptions, mergeUsage, sideOf } from "./merge_usage.ts";
import { mergeSales } from "./overage.ts";
import { cutRollovers, includesAny, mergeIncludes } from "./includes.ts";
import { duplicatesOf, subscriptionRef } from "./reads.ts";
import type { Alias, MergeRow, User, World } from "./state.ts";
import { mergeInTree, movedChildren, refusalInTree } from "./tree.ts";

/** History of more rows than this moves in the background. */
const HISTORY_AT_ONCE_MAX = 500;

interface Asked {
  from: string;
  to: string;
  dryRun: boolean;
  consentGiven: boolean;
}

type Outcome = { report: WireData } | { code: RefusalCode };

export function alias(world: World, input: Input, now: number, realNow: number): ModelReply {
  const outcome = mergePair(world, askedOf(input, input), now, realNow);
  if ("code" in outcome && isCap(outcome.code)) world.note("merges: cap reached at alias");
  return "code" in outcome ? refusal(outcome.code) : success(outcome.report);
}

/**
 * Choice: once the cap has refused a pair the batch stops, and every pair after it is refused unseen, even one
 * that is merged already or could never be merged.
 */
export function aliasBatch(world: World, input: Input, now: number, realNow: number): ModelReply {
  let cap: RefusalCode | null = null;
  const results = (input["pairs"] as Input[]).map((pair) => {
    const asked = askedOf(pair, input);
    const outcome: Outcome = cap ? { code: cap } : mergePair(world, asked, now, realNow);
    if (!cap && "code" in outcome && isCap(outcome.code)) {
      cap = outcome.code;
      world.note("merges: batch stopped by the cap");
    }
    const { from, to } = pair;
    if ("code" in outcome) {
      return { from, to, ok: false, error: { code: outcome.code }, billableOperations: 0 };
    }
    const { report } = outcome;
    return { from, to, ok: true, report, billableOperations: report["billableOperations"] as number };
  });
  const isOpen = results.some((each) => typeof each.billableOperations !== "number");
  const sum = results.reduce((sum, each) => sum + each.billableOperations, 0);
  const billableOperations = isOpen ? ANYTHING : sum;
  return success({ results, billableOperations });
}

function askedOf(pair: Input, options: Input): Asked {
  return {
    from: pair["from"] as string,
    to: pair["to"] as string,
    dryRun: options["dryRun"] === true,
    consentGiven: options["consentGiven"] === true,
  };
}

function isCap(code: RefusalCode): boolean {
  return code === "workspace_limit_reached" || code === "test_quota_exceeded";
}

/** One pair: what is refused or answered from memory, in the order of the checks; then the merge. */
function mergePair(world: World, asked: Asked, now: number, realNow: number): Outcome {
  const { from, to, dryRun } = asked;
  if (!isId(from) || !isId(to)) return { code: "invalid_request" };
  if (from === to) return refused(world, "alias_cycle");
  const known = world.aliases.find((each) => each.id === from);
  const canonical = world.aliases.find((each) => each.id === to)?.user.id ?? to;
  if (!known && canonical === from) return refused(world, "alias_cycle");
  if (known && known.user.id !== canonical) return refused(world, "alias_conflict");
  if (known) return { report: repeated(world, known, asked) };
  const { mode = "live", operationCap = null } = world.options;
  if (!dryRun && operationCap !== null && world.operationsUsed(realNow) >= operationCap) {
    return { code: mode === "live" ? "workspace_limit_reached" : "test_quota_exceeded" };
  }
  const misplaced = refusalInTree(world, world.user(from), world.user(canonical));
  if (misplaced !== null) return refused(world, misplaced);
  if (dryRun) {
    const { report } = merge(world.copy(), asked, now);
    return { report: { ...report, mergeId: null, dryRun } };
  }
  const made = inTurn(world, now, () => merge(world, asked, now), true);
  world.note("merges: merged");
  const operations = Number(made.report["billableOperations"]) || 0;
  for (let n = 0; n < operations; n++) world.countOperation(realNow);
  return { report: { ...made.report, mergeId: made.id } };
}

function refused(world: World, code: RefusalCode): Outcome {
  const notes: Partial<Record<RefusalCode, string>> = { alias_cycle: "cycle", alias_conflict: "conflict" };
  world.note(`merges: ${notes[code] ?? code}`);
  return { code };
}

/**
 * The stored report of the merge in which the id became an alias. Whether history is still moving is open; once it has
 * moved, the report has all that moved.
 */
function repeated(world: World, { merge }: Alias, { from, to, dryRun, consentGiven }: Asked): WireData {
  world.note("merges: already merged");
  const { report } = merge;
  const mayMove = report["historyPending"] !== false || world.options.isConcurrent === true;
  const moved = report["moved"] as Record<string, number>;
  const isLinked = report["analytics"] === "linked";
  const analytics = isLinked ? "already_linked" : analyticsOf(from, to, consentGiven);
  if (!dryRun && analytics === "linked") merge.report = { ...report, analytics };
  return {
    ...report,
    analytics,
    moved: Object.fromEntries(
      Object.entries(moved).map(([name, rows]) => [
        name,
        typeof rows === "number" ? oneOf(rows, merge.movedInAll[name] ?? rows) : rows,
      ]),
    ),
    mergeId: dryRun ? null : merge.id,
    from,
    to,
    dryRun,
    alreadyMerged: true,
    billableOperations: 0,
    historyPending: mayMove ? EITHER : false,
  };
}

/** Merges two users after all checks. */
function merge(world: World, asked: Asked, now: number): MergeRow {
  const [from, to] = [world.user(asked.from), world.user(asked.to)];
  const { movedInAll, open, ...counted } = countRows(world, from);
  const children = movedChildren(world, from, to);
  const sides = [sideOf(world, from, now), sideOf(world, to, now)] as const;
  const row = world.name<MergeRow>("mrg_", { report: {}, movedInAll });
  mergeInTree(world, from, to);
  becomeAlias(world, from, to, row);
  world.tell(to.id, "user.merged", now, { from: from.id, to: to.id }, { mergeId: row });
  const { ended, merged } = mergeSubscriptions(world, from, to, now);
  const counters = mergeUsage(world, ...sides, now);
  mergeEntered(world, ...sides, now);
  mergeIncludes(world, sides[0], to, now);
  const credits = mergeCredits(world, from, to, now);
  cutRollovers(world, to, now);
  takeOverHolds(world, from, to);
  mergeSales(world, from, to);
  for (const event of world.events) {
    if (event.userId === from.id) event.userId = to.id;
    for (const charge of event.amounts) if (charge.user === from) charge.user = to;
  }
  // Choice: how many balances ended by themselves is not predicted, nor whether with them there are too many rows.
  const isOpen = includesAny(world);
  const moved = isOpen ? withUnknownRows({ ...counted, open }, movedInAll) : counted;
  row.report = {
    from: asked.from,
    to: asked.to,
    mode: world.options.mode ?? "live",
    dryRun: false,
    alreadyMerged: false,
    ...moved,
    moved: { ...moved.moved, ...children },
    billableOperations: isOpen ? ANYTHING : merged + credits.moved + 2 * credits.dedupes,
    conflicts: {
      counters,
      subscriptions: duplicatesOf(world, to, now),
      // Choice: as the rows are after the merge, so they end now.
      endedSubscriptions: ended.map((each) => subscriptionRef(world, each)),
      credits: credits.conflicts,
    },
    analytics: analyticsOf(asked.from, asked.to, asked.consentGiven),
  };
  return row;
}

function analyticsOf(from: string, to: string, consentGiven: boolean): "linked" | "skipped_consent_required" {
  const anonymous = from.startsWith("anon_") || to.startsWith("anon_");
  return anonymous && !consentGiven ? "skipped_consent_required" : "linked";
}

/** What a user has before it becomes an alias. */
function countRows(world: World, user: User) {
  const events = world.events.filter((row) => row.userId === user.id).length;
  const subscriptionEvents = user.history.length;
  const creditLedger = world.ledger.filter((row) => row.balance.userId === user.id).length;
  const holds = world.reservations.filter((row) => row.user === user);
  const open = holds.filter((row) => row.state === "held").length;
  const settled = holds.length - open;
  const historyPending = events + subscriptionEvents + creditLedger + settled > HISTORY_AT_ONCE_MAX;
  if (historyPending) world.note("merges: history moves in the background");
  const ofHistory = (count: number) => historyPending ? 0 : count;
  return {
    historyPending,
    open,
    movedInAll: { events, reservations: holds.length, subscriptionEvents, creditLedger },
    moved: {
      events: ofHistory(events),
      eventLogs: 0,
      counters: world.countersOf(user.id).filter(({ count, cost }) => count > ZERO || cost > ZERO).length,
      reservations: open + ofHistory(settled),
      subscriptions: user.subscriptions.length,
      subscriptionEvents: ofHistory(subscriptionEvents),
      creditBalances: world.balances.filter((balance) => balance.userId === user.id).length,
      creditLedger: ofHistory(creditLedger),
      mediaAssets: 0,
      composeGenerations: 0,
      aliasesRepointed: world.aliasesOf(user.id).length,
    },
  };
}

/** The report where there may be any number of balances with their ledger rows beside those that are counted. */
function withUnknownRows(
  { moved, historyPending, open }: Omit<ReturnType<typeof countRows>, "movedInAll">,
  { events, reservations, subscriptionEvents }: ReturnType<typeof countRows>["movedInAll"],
) {
  const unknown = { creditBalances: ANYTHING, creditLedger: ANYTHING };
  if (historyPending) return { historyPending, moved: { ...moved, ...unknown } };
  return {
    historyPending: EITHER,
    moved: {
      ...moved,
      ...unknown,
      events: oneOf(0, events),
      reservations: oneOf(open, reservations),
      subscriptionEvents: oneOf(0, subscriptionEvents),
    },
  };
}

/** Makes the user's id, and every alias of it, an alias of the other user. */
function becomeAlias(world: World, from: User, to: User, merge: MergeRow): void {
  for (const each of world.aliases) {
    if (each.user !== from) continue;
    each.user = to;
    world.note("merges: repointed alias");
  }
  world.aliases.push({ id: from.id, user: to, merge });
  world.users.delete(from.id);
}

function takeOverHolds(world: World, from: User, to: User): void {
  for (const run of world.runs) {
    if (run.user !== from) continue;
    run.user = to;
    world.note("merges: runs of from");
  }
  const holds = world.reservations.filter((hold) => hold.user === from);
  const open = holds.filter((hold) => hold.state === "held");
  if (open.length > 0) world.note("merges: open holds on from");
  if (open.some((hold) => hold.credits.length > 0)) world.note("merges: holds on credits of from");
  for (const hold of holds) {
    const family = [hold.of, ...hold.parts, ...hold.of?.parts ?? []];
    if (family.some((each) => each !== hold && each?.user === to)) world.note("levels: parts of a hold meet");
    hold.user = to;
    if (hold.state === "expired") hold.lapsedBeforeMerge = true;
  }
}
