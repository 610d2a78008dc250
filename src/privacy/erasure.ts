// Erasure: everything of a person goes, for every id and alias, from the tables, from memory and from the journal. A job
// in the tables says what is to be done, so a restart goes on with it; doing it twice is harmless. Section 9 of the
// decisions.
//
// Bulk history goes first, step by step, while calls go on. Then the user stands still: what was decided is drained,
// which empties the journal of it, the rest goes in one transaction with the user's own row, and the actor is let go.
// Whoever calls later is a new user.

import { createHmac } from "node:crypto";
import type { Realm } from "../../actors/actor.ts";
import { eraseUser, type ErasureStep } from "../../actors/erase.ts";
import { Unavailable } from "../../actors/port.ts";
import type { UserKey } from "../domain/ids.ts";
import { inTurn } from "../process/in_turn.ts";
import { SWEEP_LIMITS } from "../process/limits.ts";
import { log, messageOf } from "../process/log.ts";
import { putConsent } from "./consents.ts";
import { erasePeople, erasePeopleEvents, idsOfPerson } from "./people.ts";
import { forgetPseudonyms } from "./pseudonyms.ts";
import type { Serving } from "../service/service.ts";
import { arrayText, type Session } from "../storage/database.ts";
import {
  deleteHistory,
  deleteUsers,
  findJob,
  findUsers,
  finishJob,
  idsOfUsers,
  insertJob,
  type JobRecord,
  listOpenJobs,
  type OpenJob,
  startJob,
} from "../storage/stores/erasure_store.ts";

/** History rows that one statement removes. */
const HISTORY_STEP_ROWS = SWEEP_LIMITS.stepRowsMax * 10;

/** Asks for the erasure of a person: hidden from now on, and erased soon. Answers the job, an open one if there is. */
export async function requestErasure(serving: Serving, realm: Realm, distinctId: string): Promise<string> {
  const jobId = await inTurn(serving, () => makeJob(serving, realm, distinctId));
  void runErasures(serving).catch((error) => {
    if (!(error instanceof Unavailable)) {
      log("warn", "An erasure did not finish", { error: messageOf(error) });
    }
  });
  return jobId;
}

/**
 * A job that has not begun, its users marked. In turn with the beginnings of jobs: none begins in between, and leaves
 * the mark on a user who is new.
 */
async function makeJob(serving: Serving, realm: Realm, distinctId: string): Promise<string> {
  const { database, ids } = serving;
  const people = await idsOfPerson(database, realm.realm, distinctId);
  const open = (await listOpenJobs(database)).find((job) =>
    job.isQueued && job.realm === realm.realm && job.distinctIds.includes(distinctId)
  );
  const jobId = open?.id ?? ids.next("job");
  if (open === undefined) {
    await insertJob(database, { id: jobId, realm: realm.realm, distinctIds: people, at: realm.now() });
  }
  for (const id of people) {
    await putConsent(serving, realm, id, { add: 0, remove: 0, entry: null, isErasing: true });
  }
  await serving.term.flush();
  return jobId;
}

/** A job of a realm, or null. */
export function findErasure({ database }: Serving, realm: number, jobId: string): Promise<JobRecord | null> {
  return findJob(database, realm, jobId);
}

const running = new WeakMap<Serving, Promise<number>>();

/** Does every open job, one after another; answers how many were done. A call while one is at work waits for it. */
export function runErasures(serving: Serving): Promise<number> {
  const before = running.get(serving) ?? Promise.resolve(0);
  const run = before.catch(() => 0).then(() => runJobs(serving));
  running.set(serving, run);
  return run;
}

async function runJobs(serving: Serving): Promise<number> {
  let done = 0;
  for (const job of await listOpenJobs(serving.database)) {
    if (!serving.term.isServing) break;
    if (await runJob(serving, job)) done += 1;
  }
  return done;
}

async function runJob(serving: Serving, job: OpenJob): Promise<boolean> {
  const { database, registry, features } = serving;
  const realm = registry.realms.get(job.realm);
  const secret = features.privacySecret;
  if (realm === undefined || secret === null) return false;
  try {
    const ids = await inTurn(serving, async () => {
      const all = await closureOf(serving, job);
      await startJob(database, job.id, all, realm.now());
      return all;
    });
    await eraseCaptured(serving, job.realm, ids);
    for (const id of ids) await erase(serving, realm, id, secret);
    await database.transaction((session) => eraseTraces(session, job.realm, ids, secret));
    await finishJob(database, job.id, realm.now(), null);
    return true;
  } catch (error) {
    // The term ended: the next one finds the job open.
    if (error instanceof Unavailable) throw error;
    log("error", "An erasure failed", { jobId: job.id, error: messageOf(error) });
    await finishJob(database, job.id, realm.now(), "The erasure could not be finished");
    return false;
  }
}

/** Takes what was captured of a person away in steps: there may be much of it. */
async function eraseCaptured(
  { term, database }: Serving,
  realm: number,
  ids: readonly string[],
): Promise<void> {
  while (term.isServing) {
    const removed = await database.transaction((session) =>
      erasePeopleEvents(session, realm, ids, HISTORY_STEP_ROWS)
    );
    if (removed < HISTORY_STEP_ROWS) break;
  }
}

/** Every distinct id of the person and every metering id that stands for one of its users. */
async function closureOf({ database }: Serving, job: OpenJob): Promise<string[]> {
  const ids = new Set<string>();
  const next = [...job.distinctIds];
  for (let id = next.pop(); id !== undefined; id = next.pop()) {
    if (ids.has(id)) continue;
    ids.add(id);
    next.push(...await idsOfPerson(database, job.realm, id));
    next.push(...(await findUsers(database, job.realm, id)).map((user) => user.id));
  }
  return [...ids];
}

async function erase(serving: Serving, realm: Realm, id: string, secret: string): Promise<void> {
  const { term, database } = serving;
  const users = await findUsers(database, realm.realm, id);
  if (users.length === 0) return;
  const keys = users.map(({ key }) => key);
  while (term.isServing) {
    const removed = await database.transaction((session) => deleteHistory(session, keys, HISTORY_STEP_ROWS));
    if (removed === 0) break;
  }
  const step: ErasureStep = async (canonicalKeys) => {
    const all = [...new Set([...keys, ...canonicalKeys])];
    // Fenced: only the writer may take a user from under the actors.
    await serving.lease.transaction((session) => eraseRest(session, realm.realm, all, secret));
    return all;
  };
  await eraseUser(term, realm.realm, id, step);
}

/** Whatever history was written while the bulk went, the users themselves and what names them, who joined included. */
async function eraseRest(
  session: Session,
  realm: number,
  keys: readonly UserKey[],
  secret: string,
): Promise<void> {
  const names = await idsOfUsers(session, keys);
  while (await deleteHistory(session, keys, HISTORY_STEP_ROWS) > 0);
  await deleteUsers(session, keys);
  await eraseTraces(session, realm, names, secret);
}

/** People, pseudonyms, consent entries and first answers that name these ids. */
async function eraseTraces(
  session: Session,
  realm: number,
  ids: readonly string[],
  secret: string,
): Promise<void> {
  const people = await session.query<{ id: string }>(
    "select person_id as id from person_ids where realm = $1::int and distinct_id = any($2::text::text[])",
    [realm, arrayText(ids)],
  );
  await forgetPseudonyms(session, secret, realm, ids);
  await erasePeople(session, realm, ids);
  for (const id of ids) {
    await session.query(
      "update consents set distinct_id = null, id_hash = $3 where realm = $1::int and distinct_id = $2",
      [realm, id, hashedId(secret, realm, id)],
    );
  }
  // First answers that no user owns, such as that of a batch: found by the ids in their bodies, and in their keys where
  // an id is long enough not to stand there by chance.
  const quoted = [...ids, ...people.map(({ id }) => id)].map((id) => JSON.stringify(id));
  await session.query(
    `delete from idempotency i using unnest($2::text::text[]) as named(id)
     where i.realm = $1::int and i.user_key is null and position(named.id in i.body) > 0`,
    [realm, arrayText(quoted)],
  );
  await session.query(
    `delete from idempotency i using unnest($2::text::text[]) as named(id)
     where i.realm = $1::int and i.user_key is null and position(named.id in i.key) > 0`,
    [realm, arrayText(ids.filter((id) => id.length >= TELLING_ID_LENGTH))],
  );
}

/** An id of this length in the middle of a text is no coincidence. */
const TELLING_ID_LENGTH = 8;

/** The keyed hash that stands in place of an id in the entries that are kept. */
export function hashedId(secret: string, realm: number, id: string): string {
  return createHmac("sha256", secret).update(`${realm}\n${id}`).digest("base64url");
}
