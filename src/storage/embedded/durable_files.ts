// Makes acknowledged writes of the embedded store durable. PGlite starts PostgreSQL with fsync off, and with fsync on its
// file layer still ignores fsync and fdatasync. This file system passes both on to the host. PostgreSQL then syncs as
// usual: the log at each commit, and data files, control file and folders at each checkpoint. It also gives files and
// folders to their owner alone: PGlite asks for files that everybody may write.
//
// It replaces internals of PGlite, so the version of the package is pinned, and each start checks that a commit really
// synced (embedded_folder.ts).

import { PGlite, type PGliteOptions } from "@electric-sql/pglite";
import { NodeFS } from "@electric-sql/pglite/nodefs";
import { chmodSync, closeSync, fdatasyncSync, fsyncSync, lstatSync, openSync, readdirSync } from "node:fs";

const EIO = 29;
const EBADF = 8;

/** Start parameters for full durability, with as much memory as one connection needs. */
const DURABLE_PARAMS: readonly string[] = [
  ...PGlite.defaultStartParams.filter((param) => param !== "-F"),
  ...[
    "fsync=on",
    "synchronous_commit=on",
    "full_page_writes=on",
    "wal_sync_method=fdatasync",
    "shared_buffers=16MB",
  ].flatMap((setting) => ["-c", setting]),
];

interface HostStream {
  /** The host's file descriptor; absent for streams that are not host files. */
  readonly nfd?: number;
}

/** The parts of PGlite's module that are used here. */
interface Module {
  readonly FS: { getStream(fd: number): HostStream | null };
  readonly NODEFS: {
    readonly stream_ops: { fsync?: (stream: HostStream) => number };
    readonly node_ops: NodeOperations;
  };
}

/** Operations on files and folders of the host. */
interface NodeOperations {
  /** Creates a file or a folder. */
  mknod: (parent: unknown, name: string, mode: number, device: number) => unknown;
  setattr: (node: unknown, attributes: { mode?: number }) => void;
}

/** The rights of all but the owner. */
const OTHERS = 0o077;

interface ModuleOptions {
  readonly preRun: readonly ((module: Module) => void)[];
  readonly instantiateWasm: (imports: WasmImports, done: unknown) => unknown;
}

interface WasmImports {
  readonly env: Record<string, (fd: number) => number>;
}

/** A folder on the host with syncs that reach the disk. */
export class DurableFiles extends NodeFS {
  /** The number of syncs that reached the host. */
  syncs = 0;
  readonly #onFault: (error: Error) => void;

  /** @param onFault called when the host could not sync: no write may be acknowledged after that */
  constructor(folder: string, onFault: (error: Error) => void) {
    super(folder);
    this.#onFault = onFault;
  }

  override async init(lite: PGlite, options: Partial<PGliteOptions>): ReturnType<NodeFS["init"]> {
    const started = await super.init(lite, options as never);
    const inner = started.emscriptenOpts as unknown as ModuleOptions;
    let files: Module["FS"] | null = null;
    const replaced: ModuleOptions = {
      ...inner,
      preRun: [...inner.preRun, (module) => {
        files = module.FS;
        module.NODEFS.stream_ops.fsync = (stream) => this.#sync(stream, fsyncSync);
        forOwnerAlone(module.NODEFS.node_ops);
      }],
      instantiateWasm: (imports, done) => {
        if (typeof imports.env.__syscall_fdatasync !== "function") {
          throw new Error("Cannot make the embedded store durable: its file layer has changed");
        }
        imports.env.__syscall_fdatasync = (fd) => {
          const stream = files?.getStream(fd);
          return stream ? -this.#sync(stream, fdatasyncSync) : -EBADF;
        };
        return inner.instantiateWasm(imports, done);
      },
    };
    return { emscriptenOpts: replaced as unknown as typeof started.emscriptenOpts };
  }

  #sync(stream: HostStream, call: (fd: number) => void): number {
    if (typeof stream.nfd !== "number") return 0;
    try {
      call(stream.nfd);
      this.syncs += 1;
      return 0;
    } catch (error) {
      this.#onFault(error as Error);
      return EIO;
    }
  }
}

/** Makes the operations give no right to others. */
function forOwnerAlone(operations: NodeOperations): void {
  const { mknod, setattr } = operations;
  operations.mknod = (parent, name, mode, device) => mknod(parent, name, mode & ~OTHERS, device);
  operations.setattr = (node, attributes) => {
    const { mode } = attributes;
    setattr(node, mode === undefined ? attributes : { ...attributes, mode: mode & ~OTHERS });
  };
}

/** Takes a file, or a folder and all of its content, from all but its owner; returns how many others could use. */
export function closeToOthers(path: string): number {
  const entry = lstatSync(path);
  if (entry.isSymbolicLink()) return 0;
  const inside = entry.isDirectory() ? readdirSync(path) : [];
  const count = closeEntry(path) ? 1 : 0;
  return inside.reduce((sum, name) => sum + closeToOthers(`${path}/${name}`), count);
}

/** Takes one file or folder from all but its owner; returns whether others could use it. */
export function closeEntry(path: string): boolean {
  const { mode } = lstatSync(path);
  if ((mode & OTHERS) === 0) return false;
  chmodSync(path, mode & 0o700);
  return true;
}

/** Opens the store in a folder with full durability; creates it if it is missing. */
export async function openLite(
  folder: string,
  onFault: (error: Error) => void,
): Promise<{ lite: PGlite; files: DurableFiles }> {
  const files = new DurableFiles(folder, onFault);
  const { embeddedAssets } = await import("./embedded_assets.ts");
  const assets = await embeddedAssets();
  return { lite: await PGlite.create({ fs: files, startParams: [...DURABLE_PARAMS], ...assets }), files };
}

/** Syncs a folder and all of its content. */
export function syncTree(path: string): void {
  const entry = lstatSync(path);
  if (entry.isSymbolicLink()) return;
  if (entry.isDirectory()) { for (const name of readdirSync(path)) syncTree(`${path}/${name}`); }
  const fd = openSync(path, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
