// The database interface on a PostgreSQL server, with postgres.js. The pool opens and closes connections as it needs them.
// A pinned session is a client with exactly one connection that no age limit renews, and its holder is told when the
// connection closes.

import postgres from "postgres";
import { Buffer } from "node:buffer";
import { createConnection, type NetConnectOpts, type Socket } from "node:net";
import { finished } from "node:stream/promises";
import { Unavailable } from "../../actors/port.ts";
import {
  type Database,
  type Param,
  type PinnedSession,
  type Session,
  TYPE_OID,
  yieldToLoop,
} from "./database.ts";

// deno-lint-ignore no-explicit-any -- postgres.js types its results by registered custom types; ours are read by column.
type Client = postgres.Sql<any>;
// deno-lint-ignore no-explicit-any -- as above
type Transaction = postgres.TransactionSql<any>;

const CONNECT_TIMEOUT_S = 5;
/** How long a COPY may take after its last chunk. */
const COPY_STALL_MS = 8_000;

/**
 * Opens a pool to a server. Nothing connects before the first statement. Its sessions are called `name` there.
 *
 * A client that lost a connection is ended and never used again, and the next statement makes another client. The reason:
 * postgres.js reopens a closed connection under a transaction that still runs on it. The rest of the transaction would then
 * run without its `begin`, or be written to a closed socket, which ends the process.
 */
export function openPostgres(url: string, poolConnectionsMax: number, name = "holdfast"): Database {
  let current: Client | null = null;
  const pool = (): Client => {
    if (current !== null) return current;
    const client = connect(url, { max: poolConnectionsMax, connection: { application_name: name } }, () => {
      if (current === client) current = null;
    });
    return current = client;
  };
  return {
    kind: "postgres",
    url,
    query: (text, params) => run(pool(), text, params),
    transaction: (work) => transact(pool(), work),
    pin: (onClose) => pin(url, name, onClose),
    named: (other) => openPostgres(url, poolConnectionsMax, other),
    maintain: () => Promise.resolve(),
    script: async (text) => {
      await pool().unsafe(text);
    },
    close: async () => {
      await current?.end({ timeout: 5 });
    },
  };
}

async function pin(url: string, name: string, onClose: () => void): Promise<PinnedSession> {
  const client = connect(url, { max: 1, connection: { application_name: name } }, onClose);
  try {
    await run(client, "select 1");
  } catch (error) {
    void client.end({ timeout: 0 });
    throw error;
  }
  return {
    ...sessionOf(client),
    transaction: (work) => transact(client, work),
    close: () => client.end({ timeout: 1 }),
  };
}

/** A client that ends when one of its connections is lost, after some time for statements on the others. */
function connect(
  url: string,
  options: postgres.Options<Record<string, postgres.PostgresType>>,
  onClose: () => void,
): Client {
  const { address, folder } = serverOf(url);
  const client = postgres(address, {
    ...(folder === null ? {} : { host: folder }),
    connect_timeout: CONNECT_TIMEOUT_S,
    idle_timeout: 0,
    max_lifetime: null,
    onnotice: () => {},
    // We disable the query for array types: its promise is never awaited, and a connection that was lost meanwhile crashed
    // the process. Arrays are bound as text and cast, so the types are not needed.
    fetch_types: false,
    // The driver has this option, but its types lack it.
    ...{ socket: openSocket },
    types: { int8: { to: TYPE_OID.int8, from: [TYPE_OID.int8], serialize: String, parse: Number } },
    ...options,
    onclose: () => {
      onClose();
      void client.end({ timeout: options.max === 1 ? 0 : 5 });
    },
  });
  return client;
}

/**
 * The folder of a server's socket, which libpq reads in place of a host or as the parameter `host`, and the address without
 * it. The driver takes the one for a host to look up and the other for a setting of the session.
 */
export function serverOf(url: string): { readonly address: string; readonly folder: string | null } {
  const address = new URL(url);
  const folder = address.searchParams.get("host") ?? decodeURIComponent(address.hostname);
  if (!folder.startsWith("/")) return { address: url, folder: null };
  address.hostname = "localhost";
  address.searchParams.delete("host");
  return { address: address.href, folder };
}

/** What postgres.js asks to connect to: a path, or hosts to try in order. */
interface SocketTarget {
  readonly path: string | false;
  readonly host: readonly string[];
  readonly port: readonly number[];
}

/**
 * Connects without Nagle's algorithm. It would hold a statement back until the server has acknowledged the one before it,
 * so appends in flight together, and the end of a COPY, would wait for no reason.
 */
async function openSocket({ path, host, port }: SocketTarget): Promise<Socket> {
  const targets = path
    ? [{ path }]
    : host.map((name, index) => ({ host: name, port: port[index] as number }));
  let fault: unknown;
  for (const target of targets) {
    try {
      return await connectSocket(target);
    } catch (error) {
      fault = error;
    }
  }
  throw fault;
}

function connectSocket(target: NetConnectOpts): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = createConnection(target);
    socket.setTimeout(CONNECT_TIMEOUT_S * 1000, () => socket.destroy(new Error("The server did not answer")));
    socket.once("error", reject);
    socket.once("connect", () => {
      socket.off("error", reject);
      socket.setTimeout(0);
      socket.setNoDelay(true);
      resolve(socket);
    });
  });
}

/**
 * Runs a transaction. When its connection is lost, postgres.js would still write the next statement, the rollback or the
 * commit to the closed socket, which ends the process. So from then on no call of the work settles; `begin` rejects by
 * itself.
 */
async function transact<T>(client: Client, work: (session: Session) => Promise<T>): Promise<T> {
  let isLost = false;
  const standStill = () => new Promise<never>(() => {});
  const guard =
    <Args extends unknown[], R>(call: (...args: Args) => Promise<R>) => (...args: Args): Promise<R> =>
      isLost ? standStill() : call(...args);
  try {
    return await client.begin(async (inner) => {
      const { query, copy } = sessionOf(inner);
      try {
        const result = await work({ query: guard(query) as Session["query"], copy: guard(copy) });
        return isLost ? standStill() : result;
      } catch (error) {
        if (isLost || isFarewell(error)) return standStill();
        throw error;
      }
    }) as T;
  } catch (error) {
    isLost = true;
    throw faultOf(error);
  }
}

/** Whether an error says that its connection is gone or about to be closed by the server. */
function isFarewell(error: unknown): boolean {
  const origin = error instanceof Unavailable ? error.cause : error;
  if (!(origin instanceof postgres.PostgresError)) return isLoss(origin);
  return origin.severity === "FATAL" || origin.severity === "PANIC";
}

/** An `Unavailable` for a lost connection or a server that cannot answer; any other error as it is. */
export function faultOf(error: unknown): unknown {
  if (error instanceof Unavailable) return error;
  const isAway = error instanceof postgres.PostgresError ? AWAY.test(error.code) : isLoss(error);
  return isAway ? new Unavailable("The database could not answer", { cause: error }) : error;
}

/** Whether an error comes from the driver or the socket. Those have a code, such as CONNECTION_CLOSED or EPIPE. */
function isLoss(error: unknown): boolean {
  return error instanceof Error && typeof (error as { code?: unknown }).code === "string";
}

/** SQLSTATEs of a server that cannot be reached, ends sessions, or has no room. */
const AWAY = /^(08...|53...|57...|58...|55000|25P0[34])$/;

function sessionOf(client: Client | Transaction): Session {
  return {
    query: (text, params) => run(client, text, params),
    async copy(table, columns, chunks) {
      const stream = await client.unsafe(`copy ${table} (${columns.join(", ")}) from stdin`).writable();
      const done = finished(stream);
      // It may fail while the next chunk is made, before we await it.
      done.catch(() => {});
      for (const chunk of chunks) {
        stream.write(Buffer.from(chunk));
        await yieldToLoop();
      }
      stream.end();
      await Promise.race([done, stalled(table)]);
    },
  };
}

/**
 * Rejects after a while. The driver's stream is not told when the server refuses a COPY, and the connection accepts no
 * other statement meanwhile. So a COPY that does not end is given up, and with it the session.
 */
function stalled(table: string): Promise<never> {
  return new Promise((_, reject) => {
    const timer = setTimeout(
      () => reject(new Unavailable(`A COPY into ${table} did not end`)),
      COPY_STALL_MS,
    );
    Deno.unrefTimer(timer);
  });
}

const NO_PARAMS: readonly Param[] = [];

async function run<Row>(
  client: Client | Transaction,
  text: string,
  params: readonly Param[] = NO_PARAMS,
): Promise<Row[]> {
  const query = client.unsafe(text, params as never[], { prepare: true });
  try {
    return await query as unknown as Row[];
  } catch (error) {
    throw faultOf(error);
  } finally {
    letGo(query);
  }
}

/**
 * Empties a query that is done. The driver's constructor assigns functions to members of the query, and V8 places functions
 * that are assigned so among what has been in use for long. They hold the query, so it stays in memory until the engine
 * collects the old generation; without this the parameters, each batch of the journal among them, would stay with it.
 */
function letGo(query: object): void {
  Object.assign(query, { args: NO_PARAMS, parameters: NO_PARAMS });
}
