// The database interface on a PostgreSQL server, with postgres.js. The pool opens and closes connections as needed. A
// pinned session is a client with exactly one connection without an age limit; its holder is notified when the connection
// closes.

import postgres from "postgres";
import { Buffer } from "node:buffer";
import { createConnection, type NetConnectOpts, type Socket } from "node:net";
import { finished } from "node:stream/promises";
import { Unavailable } from "../../actors/port.ts";
import { log } from "../process/log.ts";
import { type ServerPlace, serversOf } from "../process/server_address.ts";
import { Connections } from "./connections.ts";
import {
  type Database,
  type ExpectedDatabase,
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
 * Opens a pool to a server; it connects at the first statement. Its sessions have `name` as application name.
 *
 * A client that lost a connection is ended and never used again; the next statement creates another client. The reason:
 * postgres.js reopens a closed connection under a transaction that still runs on it. The rest of the transaction would then
 * run without its `begin`, or be written to a closed socket, which ends the process.
 */
export function openPostgres(
  url: string,
  connectionsMax: number,
  name = "holdfast",
  statementMs: number | null = null,
  expected: ExpectedDatabase | null = null,
): Database {
  const session = {
    application_name: name,
    ...(statementMs === null ? {} : { statement_timeout: statementMs }),
  };
  const pool = new Connections(
    connectionsMax,
    (onClose) => open(url, session, onClose),
  );
  const use = expected === null
    ? <T>(work: (client: Client) => Promise<T>) => pool.use(work)
    : <T>(work: (client: Client) => Promise<T>) =>
      pool.use(async (client) => {
        await requireExpected(client, expected);
        return await work(client);
      });
  return {
    kind: "postgres",
    url,
    ...expected === null ? {} : { expected },
    query: (text, params) => use((client) => run(client, text, params)),
    transaction: (work) => use((client) => transact(client, work)),
    pin: (onClose) => pin(url, name, expected, onClose),
    named: (other, options) =>
      openPostgres(url, options?.connections ?? connectionsMax, other, options?.statementMs, expected),
    maintain: () => Promise.resolve(),
    script: (text) =>
      use(async (client) => {
        await client.unsafe(text);
        assertReplicated(client);
      }),
    close: async () => {
      await Promise.allSettled(pool.close().map(async (client) => (await client).end({ timeout: 5 })));
    },
  };
}

/** Clients whose connection leads to the expected database; a client has one connection in its life. */
const expectedClients = new WeakSet<Client>();

/** Refuses a connection to another database than the expected one. */
async function requireExpected(client: Client, { clusterId }: ExpectedDatabase): Promise<void> {
  if (clusterId === null || expectedClients.has(client)) return;
  const [row] = await run<{ cluster_id: string }>(client, "select cluster_id from registry");
  if (row?.cluster_id !== clusterId) throw new Unavailable("The address leads to another database");
  expectedClients.add(client);
}

async function pin(
  url: string,
  name: string,
  expected: ExpectedDatabase | null,
  onClose: () => void,
): Promise<PinnedSession> {
  const client = await open(url, { application_name: name }, onClose);
  try {
    if (expected !== null) await requireExpected(client, expected);
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

/** The server that answered last, by the URL: the next connection tries it first. */
const answered = new Map<string, number>();

/**
 * The first statement of each connection. A commit waits for the disk and for synchronous standbys even where the role or
 * the database sets less, and the warning that it did not wait reaches us whatever the role wants to hear. No statement runs
 * for long, so compiling one takes more time than it saves: seconds where a few rows lead to very many others.
 */
const GREETING = `select pg_is_in_recovery() as "isStandby",
  set_config('client_min_messages', 'warning', false), set_config('jit', 'off', false),
  case when current_setting('synchronous_commit') in ('off', 'local')
    then set_config('synchronous_commit', 'on', false) end`;

/** Connects to the first server of a URL that answers, and that is the primary where one is wanted. */
async function open(url: string, session: SessionSettings, onClose: () => void): Promise<Client> {
  const { servers, needsPrimary } = serversOf(url);
  const first = answered.get(url) ?? 0;
  let fault: unknown;
  for (let tried = 0; tried < servers.length; tried++) {
    const index = (first + tried) % servers.length;
    let isOpen = false;
    const client = connect(servers[index] as ServerPlace, session, () => {
      if (isOpen) onClose();
    });
    try {
      const [row] = await run<{ isStandby: boolean }>(client, GREETING);
      if (needsPrimary && row?.isStandby === true) {
        throw new Unavailable("The server is a standby: it takes no writes");
      }
      isOpen = true;
      answered.set(url, index);
      return client;
    } catch (error) {
      void client.end({ timeout: 0 });
      fault = error;
    }
  }
  throw fault;
}

type SessionSettings = NonNullable<postgres.Options<Record<string, never>>["connection"]>;

/** Creates a client of one connection, which ends when that is lost. */
function connect(
  { address, folder }: ServerPlace,
  session: SessionSettings,
  onClose: () => void,
): Client {
  const client = postgres(address, {
    ...(folder === null ? {} : { host: folder }),
    max: 1,
    connection: session,
    connect_timeout: CONNECT_TIMEOUT_S,
    idle_timeout: 0,
    max_lifetime: null,
    onnotice: (notice) => {
      if (notice.routine !== WAIT_FOR_STANDBY) return;
      giveUp(client);
      onClose();
    },
    // Disables the query for array types: its promise is never awaited, and a connection lost meanwhile would crash the
    // process. Arrays are bound as text and cast, so the types are not needed.
    fetch_types: false,
    // The driver has this option, but its types lack it.
    ...{ socket: openSocket },
    types: { int8: { to: TYPE_OID.int8, from: [TYPE_OID.int8], serialize: String, parse: Number } },
    onclose: () => {
      onClose();
      void client.end({ timeout: 0 });
    },
  });
  return client;
}

/** The routine of PostgreSQL in which a commit waits for synchronous standbys. Its messages are translated, this is not. */
const WAIT_FOR_STANDBY = "SyncRepWaitForLSN";

/** Clients with a commit that may be on the primary alone. */
const unreplicated = new WeakSet<object>();

/**
 * Ends a client whose wait for a synchronous standby was cancelled. PostgreSQL answers such a commit with a warning and
 * then as a success, although a failover would lose it. The warning arrives before the success, which is thus never
 * reported to our caller, nor any later one of this connection.
 */
function giveUp(client: Client): void {
  log("warn", "The wait for a synchronous standby was cancelled: the commit is not reported as done");
  unreplicated.add(client);
  void client.end({ timeout: 0 });
}

function assertReplicated(client: object): void {
  if (unreplicated.has(client)) {
    throw new Unavailable("The commit may not have reached a synchronous standby");
  }
}

/** A target of postgres.js: a path, or hosts to try in order. */
interface SocketTarget {
  readonly path: string | false;
  readonly host: readonly string[];
  readonly port: readonly number[];
}

/**
 * Connects without Nagle's algorithm, which would delay a statement until the server has acknowledged the previous one:
 * appends in flight together, and the end of a COPY, would wait needlessly.
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
    // A balancer without a server closes at once. The driver would connect again and again without a pause.
    socket.once("end", () => {
      if (socket.bytesRead === 0) socket.destroy(closedAtOnce());
    });
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

function closedAtOnce(): Error {
  return Object.assign(new Error("The server closed the connection at once"), { code: "ECONNRESET" });
}

/**
 * Runs a transaction. When its connection is lost, postgres.js would still write the next statement, the rollback or the
 * commit to the closed socket, which ends the process. So after a loss no call of the work settles; `begin` rejects by
 * itself.
 */
async function transact<T>(client: Client, work: (session: Session) => Promise<T>): Promise<T> {
  let isLost = false;
  const standStill = () => new Promise<never>(() => {});
  const guard =
    <Args extends unknown[], R>(call: (...args: Args) => Promise<R>) => (...args: Args): Promise<R> =>
      isLost ? standStill() : call(...args);
  try {
    const done = await client.begin(async (inner) => {
      const { query, copy } = sessionOf(inner);
      try {
        const result = await work({ query: guard(query) as Session["query"], copy: guard(copy) });
        return isLost ? standStill() : result;
      } catch (error) {
        if (isLost || isFarewell(error)) return standStill();
        throw error;
      }
    }) as T;
    assertReplicated(client);
    return done;
  } catch (error) {
    isLost = true;
    throw faultOf(error);
  }
}

/** Whether an error means that its connection is gone, or that the server is about to close it. */
function isFarewell(error: unknown): boolean {
  const origin = error instanceof Unavailable ? error.cause : error;
  if (!(origin instanceof postgres.PostgresError)) return isLoss(origin);
  return origin.severity === "FATAL" || origin.severity === "PANIC";
}

/** Maps a lost connection, or a server that cannot answer, to `Unavailable`; returns any other error unchanged. */
export function faultOf(error: unknown): unknown {
  if (error instanceof Unavailable) return error;
  const isAway = error instanceof postgres.PostgresError ? AWAY.test(error.code) : isLoss(error);
  return isAway ? new Unavailable("The database could not answer", { cause: error }) : error;
}

/** Whether an error is of the driver or the socket. Those have a code, such as CONNECTION_CLOSED or EPIPE. */
function isLoss(error: unknown): boolean {
  return error instanceof Error && typeof (error as { code?: unknown }).code === "string";
}

/** SQLSTATEs of a server that cannot be reached, ends sessions, takes no writes, or has no free resources. */
const AWAY = /^(08...|53...|57...|58...|55000|25006|25P0[34])$/;

function sessionOf(client: Client | Transaction): Session {
  return {
    query: (text, params) => run(client, text, params),
    async copy(table, columns, chunks) {
      const stream = await client.unsafe(`copy ${table} (${columns.join(", ")}) from stdin`).writable();
      const done = finished(stream);
      // It may reject while the next chunk is made, before it is awaited.
      done.catch(() => {});
      for (const chunk of chunks) {
        stream.write(Buffer.from(chunk));
        await yieldToLoop();
      }
      stream.end();
      await Promise.race([done, stalled(table)]);
      assertReplicated(client);
    },
  };
}

/**
 * Rejects after a while. The driver does not end its stream when the server refuses a COPY, and the connection accepts no
 * other statement meanwhile. So a COPY that does not end is given up, and its session with it.
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
    const rows = await query as unknown as Row[];
    assertReplicated(client);
    return rows;
  } catch (error) {
    throw faultOf(error);
  } finally {
    emptyQuery(query);
  }
}

/**
 * Empties a finished query. The driver's constructor assigns functions to properties of the query, and V8 allocates these
 * in the old generation. They refer to the query, so without this its parameters, such as each batch of the journal, would
 * stay in memory until the old generation is collected.
 */
function emptyQuery(query: object): void {
  Object.assign(query, { args: NO_PARAMS, parameters: NO_PARAMS });
}
