// Small secrets in the data folder of the embedded store, readable by their owner alone.

import { randomText } from "./random.ts";

const SECRET_LENGTH = 40;

/** Returns the secret in a file of the folder; creates it on first use. */
export async function readSecret(folder: string, name: string): Promise<string> {
  try {
    const kept = (await Deno.readTextFile(`${folder}/${name}`)).trim();
    if (kept !== "") return kept;
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  const secret = randomText(SECRET_LENGTH);
  await keepSecret(folder, name, secret);
  return secret;
}

/** Whether the folder has a file. */
export async function isKept(folder: string, name: string): Promise<boolean> {
  return await Deno.stat(`${folder}/${name}`).then(() => true, () => false);
}

/** Writes a file that only its owner can read, atomically. */
export async function keepSecret(folder: string, name: string, text: string): Promise<void> {
  const fresh = `${folder}/${name}.new`;
  await Deno.remove(fresh).catch(() => {});
  await Deno.writeTextFile(fresh, text + "\n", { mode: 0o600 });
  await Deno.rename(fresh, `${folder}/${name}`);
}
