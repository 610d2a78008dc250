// The lock that keeps a second process out of a data folder. It is apart from the store, so that a process on a PostgreSQL
// server never loads the embedded one.

import { rest } from "../../process/rest.ts";

/** The data folder cannot be used; the operator sees only the message. */
export class FolderError extends Error {}

/** How long a start waits for another process to end. */
export const LOCK_LIMITS = { tries: 50, pauseMs: 100 } as const;

/** Takes the folder's lock. The kernel frees it shortly after a process ends, in whatever way. */
export async function lockFolder(folder: string): Promise<Deno.FsFile> {
  const file = await Deno.open(`${folder}/lock`, { create: true, write: true, read: true, mode: 0o600 });
  for (let tries = 0; tries < LOCK_LIMITS.tries; tries++) {
    if (await file.tryLock(true)) return file;
    await rest(LOCK_LIMITS.pauseMs);
  }
  file.close();
  throw new FolderError(`Cannot start: another process uses the data folder "${folder}"`);
}

/** Whether a process uses the folder now. */
export async function isFolderInUse(folder: string): Promise<boolean> {
  let file: Deno.FsFile;
  try {
    file = await Deno.open(`${folder}/lock`, { read: true });
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
  try {
    return !await file.tryLock(true);
  } finally {
    file.close();
  }
}
