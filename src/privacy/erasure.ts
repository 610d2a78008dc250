// Erasure: removes everything of a person, for every id and alias, from the tables, from memory and from the journal. A job
// in the tables says what is to be done, so a restart continues it; doing it twice is harmless. Section 9 of the
// decisions.
//
// Most of the history is removed first, step by step, while calls are still served. Then the user stands still: a drain
// empties the journal of what was decided, one transaction removes the rest together with the user's own row, and the
// actor leaves memory. A later call with the same id meets a new user.

import { createHmac } from "node:crypto";
import type { Realm } from "../../actors/actor.ts";
import { eraseUser, type ErasureStep } from "../../actors/erase.ts";
import { Unavailable } from "../../actors/port.ts";
import type { Term } from "../../actors/term.ts";
import type { UserKey } from "../domain/ids.ts";
import { inTurn } from "../process/in_turn.ts";
import { SWEEP_LIMITS } from "../process/limits.ts";
import { log, messageOf } from "../process/log.ts";
import { putConsent } from "./consents.ts";
import { linksDrained } from "./drained_links.ts";
import { erasePeople, idsOfPerson } from "./people.ts";
import { forgetPseudonyms } from "./pseudonyms.ts";
import type { Session } from "../storage/database.ts";
import { deleteCaptured } from "../storage/stores/capture_store.ts";
import {
  deleteAnswersKeyed,
  deleteAnswersNaming,
  deleteHistory,
  deleteUsers,
  findJob,
  findUsers,
  finishJob,
  hideConsents,
  idsOfUsers,
  insertJob,
  type JobRecord,
  listOpenJobs,
  lockUsers,
  type OpenJob,
  startJob,
} from "../storage/stores/erasure_store.ts";
import { listPersonIds } from "../storage/stores/people_store.ts";
import type { PeopleWorld } from "./world.ts";

/** What erasures use of a running term. */
export interface ErasureWorld extends Omit<PeopleWorld, "term"> {
  readonly term: Term;
  readonly registry: { readonly realms: ReadonlyMap<number, Realm> };
}

/** History rows that one statement removes. */
const HISTORY_STEP_ROWS = SWEEP_LIMITS.stepRowsMax * 10;

/** Requests the erasure of a person, who is hidden from now on. Answers the job: an open one of the person, or a new one. */
export async function requestErasure(world: ErasureWorld, realm: Realm, distinctId: string): Promise<string> {
  const jobId = await inTurn(world.term, () => makeJob(world, realm, distinctId));
  void runErasures(world).catch((error) => {
    if (!(error instanceof Unavailable)) {
      log("warn", "An erasure did not finish", { error: messageOf(error) });
    }
  });
  return jobId;
}

/**
 * A job that has not begun, with its users marked. It runs in turn with the start of jobs. Otherwise a job could start and
 * finish in between, and the mark would land on a new user of the same id.
 */
async function makeJob(world: ErasureWorld, realm: Realm, distinctId: string): Promise<string> {
  const { database, ids } = world;
  await linksDrained(world);
  const people = await idsOfPerson(database, realm.realm, distinctId);
  const open = (await listOpenJobs(database)).find((job) =>
    job.isQueued && job.realm === realm.realm && job.distinctIds.includes(distinctId)
  );
  const jobId = open?.id ?? ids.next("job");
  if (open === undefined) {
    await insertJob(database, { id: jobId, realm: realm.realm, distinctIds: people, at: realm.now() });
  }
  for (const id of people) {
    await putConsent(world, realm, id, { add: 0, remove: 0, entry: null, isErasing: true });
  }
  await world.term.flush();
  return jobId;
}

/** A job of a realm, or null. */
export function findErasure(
  { database }: Pick<ErasureWorld, "database">,
  realm: number,
  jobId: string,
): Promise<JobRecord | null> {
  return findJob(database, realm, jobId);
}

const running = new WeakMap<Term, Promise<number>>();

/** Runs every open job, one after another; answers how many finished. A call waits for the run before it. */
export function runErasures(world: ErasureWorld): Promise<number> {
  const before = running.get(world.term) ?? Promise.resolve(0);
  const run = before.catch(() => 0).then(() => runJobs(world));
  running.set(world.term, run);
  return run;
}

async function runJobs(world: ErasureWorld): Promise<number> {
  let done = 0;
  for (const job of await listOpenJobs(world.database)) {
    if (!world.term.isServing) break;
    if (await runJob(world, job)) done += 1;
  }
  return done;
}

async function runJob(world: ErasureWorld, job: OpenJob): Promise<boolean> {
  const { database, registry, features } = world;
  const realm = registry.realms.get(job.realm);
  const secret = features.privacySecret;
  if (realm === undefined || secret === null) return false;
  try {
    const ids = await inTurn(world.term, async () => {
      const all = await closureOf(world, job);
      await startJob(database, job.id, all, realm.now());
      return all;
    });
    await eraseCaptured(world, job.realm, ids);
    for (const id of ids) await erase(world, realm, id, secret);
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

/** Removes what was captured of a person in steps, since there may be much of it. */
async function eraseCaptured(
  { term, database }: ErasureWorld,
  realm: number,
  ids: readonly string[],
): Promise<void> {
  while (term.isServing) {
    const removed = await database.transaction((session) =>
      deleteCaptured(session, realm, ids, HISTORY_STEP_ROWS)
    );
    if (removed < HISTORY_STEP_ROWS) break;
  }
}

/** Every distinct id of the person and every metering id that stands for one of its users. */
async function closureOf({ database }: ErasureWorld, job: OpenJob): Promise<string[]> {
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

async function erase(world: ErasureWorld, realm: Realm, id: string, secret: string): Promise<void> {
  const { term, database } = world;
  const users = await findUsers(database, realm.realm, id);
  if (users.length === 0) return;
  const keys = users.map(({ key }) => key);
  while (term.isServing) {
    const removed = await database.transaction((session) => deleteHistory(session, keys, HISTORY_STEP_ROWS));
    if (removed === 0) break;
  }
  const step: ErasureStep = async (canonicalKeys) => {
    const all = [...new Set([...keys, ...canonicalKeys])];
    // Only the owner of the cell may take a user from under the actors.
    await world.inCell(realm.cell, (session) => eraseRest(session, realm.realm, all, secret));
    return all;
  };
  await eraseUser(term, realm.realm, id, step);
}

/** Removes history that was written since the first steps, the users themselves, and what names them. */
async function eraseRest(
  session: Session,
  realm: number,
  keys: readonly UserKey[],
  secret: string,
): Promise<void> {
  await lockUsers(session, keys);
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
  const people = await listPersonIds(session, realm, ids);
  await forgetPseudonyms(session, secret, realm, ids);
  await erasePeople(session, realm, ids);
  for (const id of ids) await hideConsents(session, realm, id, hashedId(secret, realm, id));
  // First answers that no user owns, such as that of a batch, are found by the ids in their bodies, and by those in their
  // keys where an id is long enough not to be there by chance.
  await deleteAnswersNaming(session, realm, [...ids, ...people].map((id) => JSON.stringify(id)));
  await deleteAnswersKeyed(session, realm, ids.filter((id) => id.length >= TELLING_ID_LENGTH));
}

/** An id of at least this length within a text is no coincidence. */
const TELLING_ID_LENGTH = 8;

/** The keyed hash that replaces an id in the consent entries that are kept. */
export function hashedId(secret: string, realm: number, id: string): string {
  return createHmac("sha256", secret).update(`${realm}\n${id}`).digest("base64url");
}
