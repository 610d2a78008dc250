// Erasure: removes everything of a person, for every id and alias, from the tables, from memory and from the journal. A job
// in the tables records it, so it continues after a restart; repeating a step is harmless.
//
// A job runs inside its cell from its first statement to its last, and is read again once inside: two processes never run
// the same job, and a job that another process finished meanwhile is no longer listed. When the process stops, a job ends
// after its current step, and the next owner of the cell continues it.
//
// Most of the history is removed first, step by step, while calls are still served. Then the user's mailbox is held: a
// drain empties the journal, one transaction removes the rest together with the user's own row, and the actor leaves
// memory. A later call with the same id creates a new user.

import { createHmac } from "node:crypto";
import type { Realm } from "../../actors/call.ts";
import { eraseUser, type ErasureStep } from "../../actors/erase.ts";
import { Unavailable } from "../../actors/port.ts";
import type { Term } from "../../actors/term.ts";
import { realmsHere, stay } from "../../actors/visit.ts";
import type { UserKey } from "../domain/values/ids.ts";
import { addressed, type Message, type WebhookMessage } from "../domain/state/message.ts";
import { inTurn } from "../process/in_turn.ts";
import { SWEEP_LIMITS } from "../process/limits.ts";
import { log, messageOf } from "../process/log.ts";
import { putConsent } from "./consents.ts";
import { linksDrained } from "./drained_links.ts";
import { erasePeople, idsCoveredBy, idsOfPerson } from "./people.ts";
import { forgetPseudonyms } from "./pseudonyms.ts";
import type { Session } from "../storage/database.ts";
import { hideInAudit } from "../storage/stores/audit_store.ts";
import { deleteCaptured } from "../storage/stores/capture_store.ts";
import { removeDailyUse } from "../storage/stores/daily_use_store.ts";
import {
  deleteAnswersKeyed,
  deleteHistory,
  deleteUsers,
  findJob,
  findUsers,
  finishJob,
  hideCauses,
  hideConsents,
  hideInAnswers,
  idsOfUsers,
  insertJob,
  type JobRecord,
  listOpenJobs,
  lockUsers,
  type OpenJob,
  startJob,
} from "../storage/stores/erasure_store.ts";
import { eraseFailedRequests } from "../storage/stores/failed_request_store.ts";
import { deleteRefusedCalls, removeRefusers } from "../storage/stores/refused_call_store.ts";
import { deleteStripeFacts } from "../storage/stores/stripe_store.ts";
import { insertMessages } from "../storage/stores/message_store.ts";
import { listPersonIds } from "../storage/stores/people_store.ts";
import { deletePersonLinks, listAnonymousIds, listLinkedAmong } from "../storage/stores/person_link_store.ts";
import type { PeopleWorld } from "./world.ts";

/** What erasures use of a running term. */
export interface ErasureWorld extends Omit<PeopleWorld, "term"> {
  readonly term: Term;
  readonly registry: { readonly realms: ReadonlyMap<number, Realm> };
  /** Sends webhook messages that were recorded. */
  readonly sender: { note(messages: readonly WebhookMessage[]): void };
}

/** History rows that one statement removes. */
const HISTORY_STEP_ROWS = SWEEP_LIMITS.stepRowsMax * 10;

/** Keeps the answer to the request of a job in the transaction that creates the job. */
type KeepJob = (session: Session, jobId: string) => Promise<void>;

/**
 * Requests the erasure of a person, who is hidden at once. Returns the id of the job: an open one of the person, or a new one.
 *
 * @param keep called only where a job is created; null for a call without an idempotency key
 */
export async function requestErasure(
  world: ErasureWorld,
  realm: Realm,
  distinctId: string,
  keep: KeepJob | null,
): Promise<string> {
  const jobId = await inTurn(world.term, () => makeJob(world, realm, distinctId, keep));
  void runErasures(world).catch((error) => {
    if (!(error instanceof Unavailable)) {
      log("warn", "An erasure did not finish", { error: messageOf(error) });
    }
  });
  return jobId;
}

/**
 * Creates a job and marks its users as being erased. Creating and starting jobs never overlap: otherwise a job could start
 * and finish in between, and the mark would be put on a new user with the same id.
 */
async function makeJob(
  world: ErasureWorld,
  realm: Realm,
  distinctId: string,
  keep: KeepJob | null,
): Promise<string> {
  const { database, inCell, ids } = world;
  await linksDrained(world);
  const people = await idsCoveredBy(database, realm.realm, [distinctId]);
  const open = (await listOpenJobs(database, [realm.realm])).find((job) =>
    job.isQueued && job.distinctIds.includes(distinctId)
  );
  const jobId = open?.id ?? ids.next("job");
  if (open === undefined) {
    const job = { id: jobId, realm: realm.realm, distinctIds: people, at: realm.now() };
    await inCell(realm.cell, async (session) => {
      await insertJob(session, job);
      await keep?.(session, jobId);
    });
  }
  await hide(world, realm, people);
  return jobId;
}

/** Marks users as being erased: from then on no read shows them. */
async function hide(world: ErasureWorld, realm: Realm, distinctIds: readonly string[]): Promise<void> {
  for (const id of distinctIds) {
    await putConsent(world, realm, id, { add: 0, remove: 0, entry: null, isErasing: true });
  }
  await world.term.flush();
}

/** The ids that an erasure of an id would remove now, sorted. */
export async function idsErasedWith(
  world: Pick<ErasureWorld, "database">,
  realm: number,
  distinctId: string,
): Promise<string[]> {
  const distinctIds = await idsCoveredBy(world.database, realm, [distinctId]);
  return (await closureOf(world, { realm, distinctIds })).sort();
}

/** Finds a job of a realm, or null. */
export function findErasure(
  { database }: Pick<ErasureWorld, "database">,
  realm: number,
  jobId: string,
): Promise<JobRecord | null> {
  return findJob(database, realm, jobId);
}

const running = new WeakMap<Term, Promise<number>>();

/** Runs every open job of this process's cells, one after another; returns how many finished. Runs never overlap. */
export function runErasures(world: ErasureWorld): Promise<number> {
  const before = running.get(world.term) ?? Promise.resolve(0);
  const run = before.catch(() => 0).then(() => runJobs(world));
  running.set(world.term, run);
  return run;
}

async function runJobs(world: ErasureWorld): Promise<number> {
  const { term, database, registry } = world;
  const numbers = realmsHere(term, registry.realms.values()).map(({ realm }) => realm);
  const realms = new Set((await listOpenJobs(database, numbers)).map(({ realm }) => realm));
  let done = 0;
  for (const number of realms) {
    const realm = registry.realms.get(number);
    if (!term.isServing) break;
    if (realm === undefined) continue;
    done += await stay(term, realm.cell, (mayGoOn) => runJobsOf(world, realm, mayGoOn)) ?? 0;
  }
  return done;
}

/** Whether work inside a cell may begin another step: the term lasts, and no hand-over waits for the cell. */
type MayGoOn = () => boolean;

/** Runs the jobs of a realm inside its cell. */
async function runJobsOf(world: ErasureWorld, realm: Realm, mayGoOn: MayGoOn): Promise<number> {
  let done = 0;
  for (const job of await listOpenJobs(world.database, [realm.realm])) {
    if (!mayGoOn()) break;
    if (await runJob(world, realm, job, mayGoOn)) done += 1;
  }
  return done;
}

/** Runs a job; false when it failed, or is left to the next owner of the cell. */
async function runJob(world: ErasureWorld, realm: Realm, job: OpenJob, mayGoOn: MayGoOn): Promise<boolean> {
  const { inCell, features } = world;
  const secret = features.privacySecret;
  if (secret === null) return false;
  const inOwn = <T>(work: (session: Session) => Promise<T>) => inCell(realm.cell, work);
  try {
    const ids = await inTurn(world.term, async () => {
      const all = await closureOf(world, job);
      // The request may have ended after it created the job.
      if (job.isQueued) await hide(world, realm, job.distinctIds);
      await inOwn((session) => startJob(session, job.id, all, realm.now()));
      return all;
    });
    await inOwn((session) => eraseFailedRequests(session, realm.realm, ids));
    for (const id of ids) {
      // What may still be paid is waited for: its grant belongs to this person, and a payment must never be without one.
      if (await isStillBuying(world, realm, id)) return false;
    }
    await inSteps(
      mayGoOn,
      () => inOwn((session) => deleteCaptured(session, realm.realm, ids, HISTORY_STEP_ROWS)),
    );
    for (const id of ids) {
      if (!mayGoOn()) return false;
      await erase(world, realm, id, secret, mayGoOn);
    }
    if (!mayGoOn()) return false;
    let left = await inOwn(async (session) => {
      const more = await eraseTraces(session, realm.realm, ids, secret);
      await deletePersonLinks(session, realm.realm, ids);
      return more;
    });
    while (left !== null) {
      if (!mayGoOn()) return false;
      const after = left;
      left = await inOwn((session) => hideInAnswers(session, realm.realm, ids, HISTORY_STEP_ROWS, after));
    }
    await complete(world, realm, job.id);
    return true;
  } catch (error) {
    // The term ended: the next one finds the job open.
    if (error instanceof Unavailable) throw error;
    log("error", "An erasure failed", { jobId: job.id, error: messageOf(error) });
    await inOwn((session) => finishJob(session, job.id, realm.now(), "The erasure could not be finished"));
    return false;
  }
}

/**
 * Completes a job and records the message `person.erased`, in one transaction: a job that is repeated after a crash sends
 * it once.
 */
async function complete({ inCell, ids, sender }: ErasureWorld, realm: Realm, jobId: string): Promise<void> {
  let messages: readonly WebhookMessage[] = [];
  try {
    await inCell(realm.cell, async (session) => {
      const now = realm.now();
      const { outbox } = realm;
      if (!await finishJob(session, jobId, now, null) || outbox === null) return;
      const message: Message = { type: "person.erased", at: now, data: { jobId } };
      messages = addressed([message], outbox, { userKey: null, realm: realm.realm, now }, ids);
      await insertMessages(session, messages);
    });
  } finally {
    // Also when the answer of the commit was lost: the rows may exist.
    sender.note(messages);
  }
}

/** Removes rows in steps until a step finds none. */
async function inSteps(mayGoOn: MayGoOn, step: () => Promise<number>): Promise<void> {
  while (mayGoOn() && await step() > 0);
}

/**
 * Collects every distinct id of the person, and every id and alias of its users, and the anonymous ids that public keys
 * linked to one of them. Nothing is reached from such an id.
 */
async function closureOf(
  { database }: Pick<ErasureWorld, "database">,
  job: Pick<OpenJob, "realm" | "distinctIds">,
): Promise<string[]> {
  const ids = new Set<string>();
  const anonymous = await listLinkedAmong(database, job.realm, job.distinctIds);
  const next = job.distinctIds.filter((id) => !anonymous.includes(id));
  for (let id = next.pop(); id !== undefined; id = next.pop()) {
    if (ids.has(id)) continue;
    ids.add(id);
    // One by one: a user may have more aliases than a call can have arguments.
    for (const other of await idsOfPerson(database, job.realm, id)) next.push(other);
    for (const user of await findUsers(database, job.realm, id)) next.push(user.id);
  }
  return [...new Set([...ids, ...await listAnonymousIds(database, job.realm, [...ids])])];
}

/** Removes the user's top-up setting, calls off what is not confirmed, and returns whether a payment is under way. */
async function isStillBuying({ term, database }: ErasureWorld, realm: Realm, id: string): Promise<boolean> {
  const [user] = await findUsers(database, realm.realm, id);
  if (user === undefined) return false;
  const call = { realm, name: "deleteTopUp", input: {} } as const;
  const result = await term.directory.runByKey(user.key, call);
  return result?.ok === true && result.answer.isUnderWay;
}

async function erase(
  world: ErasureWorld,
  realm: Realm,
  id: string,
  secret: string,
  mayGoOn: MayGoOn,
): Promise<void> {
  const { term, database, inCell } = world;
  const users = await findUsers(database, realm.realm, id);
  const keys = users.map(({ key }) => key);
  const names = users.length === 0 ? [id] : users.map((user) => user.id);
  await term.refusedCalls.write([realm.realm]);
  await inSteps(
    mayGoOn,
    () => inCell(realm.cell, (session) => deleteRefusedCalls(session, realm.realm, names, HISTORY_STEP_ROWS)),
  );
  await inSteps(
    mayGoOn,
    () => inCell(realm.cell, (session) => removeRefusers(session, realm.realm, names, HISTORY_STEP_ROWS)),
  );
  if (users.length === 0) return;
  await inSteps(
    mayGoOn,
    () => inCell(realm.cell, (session) => deleteHistory(session, keys, HISTORY_STEP_ROWS)),
  );
  if (!mayGoOn()) return;
  const step: ErasureStep = async (canonicalKeys) => {
    const all = [...new Set([...keys, ...canonicalKeys])];
    await inCell(realm.cell, (session) => eraseRest(session, realm.realm, all, secret));
    return all;
  };
  await eraseUser(term, realm, id, step);
}

/** Removes history written since the first steps, the users themselves, and rows that name them. */
async function eraseRest(
  session: Session,
  realm: number,
  keys: readonly UserKey[],
  secret: string,
): Promise<void> {
  // First of all: adding up events takes this lock before others too.
  await removeDailyUse(session, realm, keys);
  await lockUsers(session, keys);
  const names = await idsOfUsers(session, keys);
  while (await deleteHistory(session, keys, HISTORY_STEP_ROWS) > 0);
  while (await deleteRefusedCalls(session, realm, names, HISTORY_STEP_ROWS) > 0);
  while (await removeRefusers(session, realm, names, HISTORY_STEP_ROWS) > 0);
  while (await hideCauses(session, keys, HISTORY_STEP_ROWS) > 0);
  await deleteUsers(session, keys);
  await eraseTraces(session, realm, names, secret);
}

/**
 * Removes people, pseudonyms and payments, and hides these ids in consent entries, the audit log and a step of first answers.
 * Returns the idempotency key after which the next step begins, null for none.
 */
async function eraseTraces(
  session: Session,
  realm: number,
  ids: readonly string[],
  secret: string,
): Promise<string | null> {
  const people = await listPersonIds(session, realm, ids);
  await forgetPseudonyms(session, secret, realm, ids);
  await erasePeople(session, realm, ids);
  await deleteStripeFacts(session, realm, ids);
  for (const id of ids) await hideConsents(session, realm, id, hashedId(secret, realm, id));
  await hideInAudit(session, realm, new Map(ids.map((id) => [id, hashedId(secret, realm, id)])));
  // First answers without a user, such as that of a batch, are found by the ids in their bodies, and in their keys where
  // the id is too long to be there by chance.
  const left = await hideInAnswers(session, realm, [...ids, ...people], HISTORY_STEP_ROWS);
  await deleteAnswersKeyed(session, realm, ids.filter((id) => id.length >= TELLING_ID_LENGTH));
  return left;
}

/** An id of at least this length within a text is not a coincidence. */
const TELLING_ID_LENGTH = 8;

/** The keyed hash that replaces an id in the consent entries that are kept. */
function hashedId(secret: string, realm: number, id: string): string {
  return createHmac("sha256", secret).update(`${realm}\n${id}`).digest("base64url");
}
