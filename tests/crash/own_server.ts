// A PostgreSQL server of our own in a temporary folder, on a free port, which may be killed: what a test must never do
// to a server that others use. Made with the programs of an installed PostgreSQL; ended and removed with the test.

import { openPostgres } from "../../src/storage/postgres_database.ts";
import { pause, until, within } from "./program.ts";

const READY_MS = 60_000;
const STOP_MS = 60_000;
/** Where systems keep the programs when they are not on the path. */
const INSTALLED = "/usr/lib/postgresql";
/** The server refuses to run as root; its packages make this user for it. */
const SERVER_USER = "postgres";

const SETTINGS = [
  "listen_addresses=127.0.0.1",
  "unix_socket_directories=",
  "max_connections=150",
  "shared_buffers=32MB",
  "fsync=on",
  "synchronous_commit=on",
  // Commits that do not wait for the disk are written late, so that a crash really loses some.
  "wal_writer_delay=10s",
];

/** Whom the server's programs run as; the own user where this process is not root. */
export interface Owner {
  readonly uid?: number;
  readonly gid?: number;
}

/** A running server for this test alone. */
export class OwnServer implements AsyncDisposable {
  readonly url: string;
  /** Whether its folder stays when it ends. */
  isKept = false;
  readonly #programs: string;
  readonly #folder: string;
  readonly #owner: Owner;
  readonly #port: number;
  #postmaster: Deno.ChildProcess | null = null;

  private constructor(programs: string, folder: string, owner: Owner) {
    this.#programs = programs;
    this.#folder = folder;
    this.#owner = owner;
    using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    this.#port = listener.addr.port;
    this.url = `postgres://postgres@127.0.0.1:${this.#port}/postgres`;
  }

  get folder(): string {
    return this.#folder;
  }

  /** The host and port. */
  get place(): string {
    return `127.0.0.1:${this.#port}`;
  }

  /**
   * Makes a server and starts it; null where PostgreSQL is not installed.
   *
   * @param primary makes a standby of this server, which streams from it
   */
  static async open(primary: OwnServer | null = null): Promise<OwnServer | null> {
    const programs = await findPrograms();
    if (programs === null) return null;
    const owner = Deno.uid() === 0 ? await ownerOf(SERVER_USER) : {};
    const folder = await Deno.makeTempDir({ prefix: "holdfast_server_" });
    if (owner.uid !== undefined) await Deno.chown(folder, owner.uid, owner.gid ?? owner.uid);
    const server = new OwnServer(programs, folder, owner);
    try {
      const data = ["-D", `${folder}/data`, "-U", "postgres", "--no-sync"];
      if (primary === null) await server.#run("initdb", [...data, "-A", "trust"]);
      else {
        const source = ["-h", "127.0.0.1", "-p", String(primary.#port), "-R", "-c", "fast"];
        await server.#run("pg_basebackup", [...data, ...source]);
      }
      await server.start();
    } catch (error) {
      await server[Symbol.asyncDispose]();
      throw error;
    }
    return server;
  }

  /** Starts the server, again and again while what a killed one left is still in its way, until it answers. */
  async start(): Promise<void> {
    await until("the server answers", READY_MS, async () => {
      this.#postmaster ??= this.#spawn();
      return await this.#answers() ? true : null;
    });
  }

  /** Kills the server (SIGKILL), or has it drop everything at once (SIGQUIT), and waits for its end. */
  async crash(signal: "SIGKILL" | "SIGQUIT"): Promise<void> {
    const postmaster = this.#postmaster;
    if (postmaster === null) return;
    signalTo(postmaster, signal);
    await within(postmaster.status, STOP_MS, () => "the server's end");
    this.#postmaster = null;
  }

  /** Runs statements of an administrator, each in a session of its own. */
  async tell(...statements: readonly string[]): Promise<void> {
    const database = openPostgres(this.url, 1);
    try {
      for (const statement of statements) await database.query(statement);
    } finally {
      await database.close();
    }
  }

  /** Kills one process of the server, which makes the server drop every session and recover. */
  killBackend(pid: number): void {
    try {
      Deno.kill(pid, "SIGKILL");
    } catch {
      // It ended by itself in between.
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.crash("SIGQUIT");
    if (!this.isKept) await Deno.remove(this.#folder, { recursive: true });
  }

  #spawn(): Deno.ChildProcess {
    const args = ["-D", `${this.#folder}/data`, "-p", String(this.#port)];
    const process = new Deno.Command(`${this.#programs}/postgres`, {
      args: [...args, ...SETTINGS.flatMap((setting) => ["-c", setting])],
      cwd: this.#folder,
      ...this.#owner,
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }).spawn();
    void process.status.then(() => {
      if (this.#postmaster === process) this.#postmaster = null;
    });
    return process;
  }

  async #answers(): Promise<boolean> {
    const database = openPostgres(this.url, 1);
    try {
      await within(database.query("select 1"), 2_000, () => "an answer");
      return true;
    } catch {
      await pause(50);
      return false;
    } finally {
      await database.close();
    }
  }

  async #run(program: string, args: readonly string[]): Promise<void> {
    const { success, stderr } = await new Deno.Command(`${this.#programs}/${program}`, {
      args: [...args],
      cwd: this.#folder,
      ...this.#owner,
    }).output();
    if (!success) throw new Error(`${program}: ${new TextDecoder().decode(stderr)}`);
  }
}

/** The folder of the server's programs, the newest version first; null where there is no such folder. */
async function findPrograms(): Promise<string | null> {
  const versions: string[] = [];
  try {
    for await (const { name } of Deno.readDir(INSTALLED)) versions.push(name);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  versions.sort((a, b) => Number(b) - Number(a));
  const folders = [
    ...versions.map((version) => `${INSTALLED}/${version}/bin`),
    ...(Deno.env.get("PATH") ?? "").split(":"),
  ];
  for (const folder of folders) {
    const isThere = await Promise.all(["initdb", "postgres"].map((name) => isFile(`${folder}/${name}`)));
    if (!isThere.includes(false)) return folder;
  }
  return null;
}

async function isFile(path: string): Promise<boolean> {
  return await Deno.stat(path).then((info) => info.isFile, () => false);
}

export async function ownerOf(user: string): Promise<Owner> {
  const [uid, gid] = await Promise.all(["-u", "-g"].map(async (flag) => {
    const { stdout, success } = await new Deno.Command("id", { args: [flag, user] }).output();
    if (!success) throw new Error(`There is no user "${user}" that the server could run as`);
    return Number(new TextDecoder().decode(stdout));
  }));
  return { uid: uid as number, gid: gid as number };
}

function signalTo(process: Deno.ChildProcess, signal: Deno.Signal): void {
  try {
    process.kill(signal);
  } catch {
    // It ended by itself in between.
  }
}
