// A process's side of the database: connections that take time, break, and lose the answer to completed work. When one
// breaks, a prefix of what was in flight may still arrive, but only while its session lives.
//
// It behaves as the product's driver does: a statement outside a transaction waits for the transaction to end, and
// work that loses its connection inside a transaction never settles while the transaction itself fails.

import { Unavailable } from "../../../actors/port.ts";
import type { Database, Param, PinnedSession, Session } from "../../../src/storage/database.ts";
import type { Message, Reply, Server, ServerSession } from "./server.ts";
import type { Faults } from "../faults.ts";
import type { Fields } from "../../support/memory_store.ts";
import { type Owner, type VirtualTime, WORLD } from "../time.ts";

/** What connections of one process share. */
export interface Line {
  readonly time: VirtualTime;
  readonly server: Server;
  readonly faults: Faults;
  readonly owner: Owner;
  /** Called with each message before it is sent. */
  onSend(message: Message, owner: Owner): void;
}

interface Pending {
  readonly cancel: () => void;
  isDelivered: boolean;
  readonly reject: (error: Error) => void;
}

/** One connection with its session. */
class Connection {
  isBroken = false;
  readonly #line: Line;
  readonly #session: ServerSession;
  readonly #pending = new Set<Pending>();
  #noticedAt = 0;
  #deliverAt = 0;
  #replyAt = 0;
  readonly #onBroken: () => void;
  #busy = 0;
  /** Ends when no transaction is under way. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(line: Line, name: string, onClose: () => void) {
    this.#line = line;
    this.#onBroken = onClose;
    const session = line.server.open(name, () => this.#hearOfEnd());
    if (session === null) throw new Unavailable("The database is away");
    this.#session = session;
  }

  /** Sends a message after all that was sent before. */
  send(message: Message): Promise<Fields[]> {
    const { time, server, faults, owner } = this.#line;
    this.#line.onSend(message, owner);
    return new Promise((resolve, reject) => {
      if (this.isBroken) {
        // A process that has not yet noticed the missing server waits until it does.
        time.after(Math.max(1, this.#noticedAt - time.now), owner, () => reject(lost()));
        return;
      }
      const fate = faults.fateOf(message, owner);
      const arrivesAt = Math.max(
        time.now + faults.latency(),
        faults.stuckUntil(message, owner),
        server.frozenUntil,
      );
      this.#deliverAt = Math.max(this.#deliverAt, arrivesAt);
      const onReply = (reply: Reply) => this.#hear(pending, reply, resolve, reject);
      const arrive = () => {
        pending.isDelivered = true;
        server.receive(this.#session, message, onReply);
        if (fate === "answer lost") this.#break(faults.isSilent());
      };
      const cancel = time.at(this.#deliverAt, WORLD, arrive);
      const pending: Pending = { cancel, isDelivered: false, reject };
      this.#pending.add(pending);
      if (fate === "lost") {
        cancel();
        time.at(this.#deliverAt, WORLD, () => this.breakOff(faults.isSilent(), 0));
      }
    });
  }

  /** Runs statements one after another as one transaction; none of others comes between. */
  transaction<T>(work: (session: Session) => Promise<T>): Promise<T> {
    return this.#inTurn(() => this.#transact(work));
  }

  query(text: string, params: readonly Param[] = []): Promise<Fields[]> {
    return this.#afterTurn(() => this.send({ kind: "query", text, params }));
  }

  copy(table: string, chunks: Iterable<string>): Promise<Fields[]> {
    const lines = [...chunks].join("").split("\n").slice(0, -1);
    return this.#afterTurn(() => this.send({ kind: "copy", table, lines }));
  }

  /** Closes the connection; the server ends its session soon. */
  close(): Promise<void> {
    if (this.isBroken) return Promise.resolve();
    this.isBroken = true;
    const { time, server, faults } = this.#line;
    for (const { reject } of this.#pending) reject(lost());
    this.#pending.clear();
    const endsAt = Math.max(this.#deliverAt, time.now + faults.latency());
    time.at(endsAt, WORLD, () => server.end(this.#session));
    return Promise.resolve();
  }

  /** Breaks the connection from outside: of what is under way a prefix may still arrive. */
  breakOff(isSilent: boolean, arriving?: number): void {
    const flying = [...this.#pending].filter(({ isDelivered }) => !isDelivered);
    const prefix = arriving ?? this.#line.faults.prefixOf(flying.length);
    for (const pending of flying.slice(prefix)) pending.cancel();
    this.#break(isSilent);
  }

  /** The server ends the session at once, and its client hears nothing for a while. */
  endUnheard(): void {
    if (this.isBroken) return;
    const { server, faults } = this.#line;
    for (const { cancel } of this.#pending) cancel();
    this.#lose(faults.silenceMs());
    server.end(this.#session);
  }

  #transact<T>(work: (session: Session) => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      // Work that begins on a broken connection fails by itself, as soon as the loss is noticed.
      if (this.isBroken) return void this.send({ kind: "begin" }).catch(reject);
      const standStill = () => new Promise<never>(() => {});
      const guarded = (message: Message): Promise<Fields[]> =>
        this.isBroken ? standStill() : this.send(message).catch((error) => {
          if (!this.isBroken) throw error;
          reject(lost());
          return standStill();
        });
      const session: Session = {
        query: ((text: string, params: readonly Param[] = []) =>
          guarded({ kind: "query", text, params })) as Session["query"],
        copy: async (table, _columns, chunks) => {
          await guarded({ kind: "copy", table, lines: [...chunks].join("").split("\n").slice(0, -1) });
        },
      };
      const run = async () => {
        await guarded({ kind: "begin" });
        let result: T;
        try {
          result = await work(session);
        } catch (error) {
          await guarded({ kind: "rollback" });
          throw error;
        }
        await guarded({ kind: "commit" });
        return result;
      };
      run().then(resolve, reject);
    });
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const run = this.#turn.then(work);
    this.#turn = run.catch(() => {});
    this.#busy += 1;
    run.catch(() => {}).finally(() => this.#busy -= 1);
    return run;
  }

  /** At once when no transaction is under way: the order of sending is then that of the calls. */
  #afterTurn<T>(work: () => Promise<T>): Promise<T> {
    return this.#busy === 0 ? work() : this.#turn.then(work);
  }

  #hear(
    pending: Pending,
    reply: Reply,
    resolve: (rows: Fields[]) => void,
    reject: (error: Error) => void,
  ): void {
    if (this.isBroken) return;
    const { time, faults, owner } = this.#line;
    this.#replyAt = Math.max(this.#replyAt, time.now + faults.latency());
    time.at(this.#replyAt, owner, () => {
      if (!this.#pending.delete(pending)) return;
      if ("rows" in reply) resolve(reply.rows.map((row) => ({ ...row })));
      else reject(Object.assign(new Error(reply.error), { code: reply.code }));
    });
  }

  /**
   * Breaks the connection. With a reset both sides know soon. In silence the server ends the session when it has
   * been idle for as long as it may be, or when nothing has been heard of it for very long.
   */
  #break(isSilent: boolean): void {
    if (this.isBroken) return;
    const { time, server, faults } = this.#line;
    this.#lose(isSilent ? faults.silenceMs() : faults.resetMs());
    const isWatched = isSilent && this.#session.idleMs !== null;
    if (!isWatched) {
      const endsAfterMs = isSilent ? faults.silenceMs() : faults.resetMs();
      time.after(endsAfterMs, WORLD, () => server.end(this.#session));
    }
  }

  /** The server ended the session. */
  #hearOfEnd(): void {
    const { faults, owner } = this.#line;
    if (!this.isBroken) this.#lose(faults.isCut(owner) ? faults.silenceMs() : faults.resetMs());
  }

  /** From now on nothing arrives any more; the process learns of it later. */
  #lose(noticeMs: number): void {
    const { time, owner } = this.#line;
    this.isBroken = true;
    this.#noticedAt = time.now + noticeMs;
    const left = [...this.#pending];
    this.#pending.clear();
    time.after(noticeMs, owner, () => {
      for (const { reject } of left) reject(lost());
      this.#onBroken();
    });
  }
}

function lost(): Error {
  return new Unavailable("The connection to the database was lost");
}

/** The database as one process has it. */
export class SimDatabase implements Database {
  readonly kind = "postgres";
  readonly url = null;
  readonly #line: Line;
  readonly #name: string;
  readonly #connections = new Set<Connection>();
  readonly #named: SimDatabase[] = [];

  /** @param name what its sessions are called on the server */
  constructor(line: Line, name = "holdfast") {
    this.#line = line;
    this.#name = name;
  }

  named(name: string): Database {
    const other = new SimDatabase(this.#line, name);
    this.#named.push(other);
    return other;
  }

  async query<Row = Record<string, unknown>>(text: string, params: readonly Param[] = []): Promise<Row[]> {
    const connection = await this.#connect(() => {});
    try {
      return await connection.query(text, params) as Row[];
    } finally {
      this.#drop(connection);
    }
  }

  async transaction<T>(work: (session: Session) => Promise<T>): Promise<T> {
    const connection = await this.#connect(() => {});
    try {
      return await connection.transaction(work);
    } finally {
      this.#drop(connection);
    }
  }

  async pin(onClose: () => void): Promise<PinnedSession> {
    const connection = await this.#connect(onClose);
    return {
      query:
        ((text: string, params: readonly Param[] = []) => connection.query(text, params)) as PinnedSession[
          "query"
        ],
      copy: async (table, _columns, chunks) => {
        await connection.copy(table, chunks);
      },
      transaction: (work) => connection.transaction(work),
      close: () => {
        this.#drop(connection);
        return Promise.resolve();
      },
    };
  }

  /** Breaks every connection, those of other names too. */
  breakAll(isSilent: boolean): void {
    for (const other of this.#named) other.breakAll(isSilent);
    for (const connection of this.#connections) connection.breakOff(isSilent);
    this.#connections.clear();
  }

  /** Has the server end every session without notice to this side. */
  endUnheard(): void {
    for (const other of this.#named) other.endUnheard();
    for (const connection of this.#connections) connection.endUnheard();
    this.#connections.clear();
  }

  maintain(): Promise<void> {
    return Promise.resolve();
  }

  script(): Promise<void> {
    return Promise.reject(new Error("No script runs in a simulation"));
  }

  close(): Promise<void> {
    for (const connection of this.#connections) void connection.close();
    return Promise.resolve();
  }

  /** A connection, after the time that connecting takes. */
  #connect(onClose: () => void): Promise<Connection> {
    const { time, server, faults, owner } = this.#line;
    return new Promise((resolve, reject) => {
      const attempt = () => {
        try {
          if (faults.isCut(owner)) throw lost();
          const connection = new Connection(this.#line, this.#name, onClose);
          this.#connections.add(connection);
          resolve(connection);
        } catch (error) {
          reject(error);
        }
      };
      time.after(Math.max(faults.latency(), server.frozenUntil - time.now), owner, attempt);
    });
  }

  #drop(connection: Connection): void {
    this.#connections.delete(connection);
    void connection.close();
  }
}
