// The folder of the embedded store. A lock keeps a second process out, a store is created completely or not at all, and
// an acknowledged write survives a crash of the process and of the machine. No other user of the machine may read it.

import type { PGlite } from "@electric-sql/pglite";
import { existsSync, readdirSync } from "node:fs";
import type { Database } from "../database.ts";
import type { CreateAnswer } from "./create_worker.ts";
import { closeEntry, closeToOthers, type DurableFiles, openLite, syncTree } from "./durable_files.ts";
import { embeddedDatabase } from "./embedded_database.ts";
import { FolderError, lockFolder } from "./folder_lock.ts";
import { log, messageOf } from "../../process/log.ts";

/** Exit status after a failed sync: EX_IOERR of sysexits.h. */
const EXIT_IO_ERROR = 74;

/** Opens the store in a folder; creates both if they are missing. */
export async function openEmbedded(folder: string): Promise<Database> {
  let lock: Deno.FsFile;
  try {
    await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
    lock = await lockFolder(folder);
    takeFromOthers(folder);
  } catch (error) {
    if (error instanceof FolderError) throw error;
    throw new FolderError(`Cannot start: HOLDFAST_DATA_DIR: ${messageOf(error)}`);
  }
  const data = `${folder}/pg`;
  if (!existsSync(data)) await createStore(folder, data);
  const { lite, files } = await openLite(data, stopAtFault);
  await checkDurable(lite, files);
  return embeddedDatabase(lite, () => lock.close());
}

/** Windows has other rights, which a folder inherits. */
const HAS_MODES = Deno.build.os !== "windows";

/** Takes the folder, with what earlier versions wrote into it, from the other users of the machine. */
function takeFromOthers(folder: string): void {
  if (!HAS_MODES) return;
  const own = readdirSync(folder, { withFileTypes: true }).filter((entry) =>
    entry.isFile() || entry.name === "pg"
  );
  let entries = own.reduce((sum, { name }) => sum + closeToOthers(`${folder}/${name}`), 0);
  try {
    if (closeEntry(folder)) entries += 1;
  } catch (error) {
    // A mounted volume may belong to another user.
    log(
      "warn",
      "Other users of this machine may enter the data folder, and it is not this user's: take their rights",
      {
        folder,
        error: messageOf(error),
      },
    );
  }
  if (entries === 0) return;
  log("warn", "Other users of this machine had rights to the data folder: they have none now", {
    folder,
    entries,
  });
}

/** Creates a store under another name, syncs it, then renames it, so that an incomplete store never has the real name. */
async function createStore(folder: string, data: string): Promise<void> {
  log("info", "Creating the embedded store", { folder });
  const fresh = `${data}.new`;
  await Deno.remove(fresh, { recursive: true }).catch(() => {});
  await Deno.mkdir(fresh, { mode: 0o700 });
  const error = await runCreateWorker(fresh);
  if (error !== null) {
    throw new FolderError(`Cannot start: the embedded store could not be created: ${error}`);
  }
  syncTree(fresh);
  await Deno.rename(fresh, data);
  syncTree(folder);
}

async function runCreateWorker(folder: string): Promise<string | null> {
  const worker = new Worker(new URL("./create_worker.ts", import.meta.url), { type: "module" });
  try {
    return await new Promise((resolve) => {
      worker.onmessage = ({ data }: MessageEvent<CreateAnswer>) => resolve(data.error);
      worker.onerror = (event) => {
        event.preventDefault();
        resolve(event.message);
      };
      worker.postMessage(folder);
    });
  } finally {
    worker.terminate();
  }
}

/** Ends the process after a failed sync: PostgreSQL would go on and acknowledge writes that may be lost. */
function stopAtFault(error: Error): void {
  log("error", "The disk could not sync; stopping", { error: messageOf(error) });
  Deno.exit(EXIT_IO_ERROR);
}

/** Checks that a commit reaches the disk: a later version of PGlite might change that. */
async function checkDurable(lite: PGlite, files: DurableFiles): Promise<void> {
  const before = files.syncs;
  await lite.exec("create table if not exists durable_check (at timestamptz); truncate durable_check");
  if (files.syncs > before) return;
  throw new FolderError("Cannot start: the embedded store does not sync its commits to the disk");
}
