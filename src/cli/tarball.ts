// A package for npm: a gzipped tar archive with everything under `package/`. The same files give the same bytes.

import { EXIT, TaskError } from "./shell.ts";

/** A package ready to be installed. */
export interface Tarball {
  /** In the form of npm: name, version, `.tgz`. */
  readonly fileName: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Paths in the package, in order. */
  readonly paths: readonly string[];
}

/** Packs files by their paths, texts or bytes. */
export async function packTarball(
  { name, version }: { readonly name: string; readonly version: string },
  files: ReadonlyMap<string, string | Uint8Array<ArrayBuffer>>,
): Promise<Tarball> {
  const paths = [...files.keys()].sort();
  const entries = paths.flatMap((path) => entryOf(`package/${path}`, files.get(path) ?? ""));
  const tar = new Blob([...entries, new Uint8Array(2 * BLOCK_BYTES)]);
  const zipped = new Response(tar.stream().pipeThrough(new CompressionStream("gzip")));
  return { fileName: `${name}-${version}.tgz`, bytes: await zipped.bytes(), paths };
}

/** Writes a package into a folder and returns its path. */
export async function writeTarball(folder: string, { fileName, bytes }: Tarball): Promise<string> {
  const path = `${folder.replace(/\/+$/, "")}/${fileName}`;
  try {
    await Deno.writeFile(path, bytes);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    throw new TaskError(`--out: no such folder: ${folder}`, EXIT.usage);
  }
  return path;
}

const BLOCK_BYTES = 512;
/** The room for a path in a header. */
const PATH_BYTES_MAX = 100;
const encoder = new TextEncoder();

/** A file of a tar archive: header, content, and zeros up to a whole block. */
function entryOf(path: string, content: string | Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer>[] {
  const bytes = typeof content === "string" ? encoder.encode(content) : content;
  const rest = (BLOCK_BYTES - bytes.length % BLOCK_BYTES) % BLOCK_BYTES;
  return [headerOf(path, bytes.length), bytes, new Uint8Array(rest)];
}

/** The header of a plain file that every user may read. Its time is zero, so that the same files give the same bytes. */
function headerOf(path: string, bytes: number): Uint8Array<ArrayBuffer> {
  if (encoder.encode(path).length > PATH_BYTES_MAX) throw new Error(`Too long for a tar archive: ${path}`);
  const header = new Uint8Array(BLOCK_BYTES);
  const put = (place: number, text: string) => header.set(encoder.encode(text), place);
  const octal = (value: number, digits: number) => `${value.toString(8).padStart(digits, "0")}\0`;
  put(0, path);
  put(100, octal(0o644, 7));
  put(108, octal(0, 7));
  put(116, octal(0, 7));
  put(124, octal(bytes, 11));
  put(136, octal(0, 11));
  put(148, " ".repeat(8));
  put(156, "0");
  put(257, "ustar\0" + "00");
  put(148, `${octal(header.reduce((sum, byte) => sum + byte, 0), 6)} `);
  return header;
}
