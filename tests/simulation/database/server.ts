// The simulated database server: sessions, their settings and transactions, the lock of the lease, one lock for
// writing transactions, idle sessions that it ends, and restarts. What was committed survives a restart and nothing
// else does. It understands the statements of the product and no others (`statements.ts`).
//
// Simpler than a server: transactions that write run one after another, from their first write to their end; a
// statement outside of a transaction does not wait for them.

import type { Param } from "../../../src/storage/database.ts";
import type { Fields } from "../../support/memory_store.ts";
import { SimTables } from "./tables.ts";
import { type Effect, statementOf } from "./statements.ts";
import { TABLES } from "../../../src/storage/rows/tables.ts";
import { type VirtualTime, WORLD } from "../time.ts";

/** What a connection sends. */
export type Message =
  | { readonly kind: "query"; readonly text: string; readonly params: readonly Param[] }
  | { readonly kind: "copy"; readonly table: string; readonly lines: readonly string[] }
  | { readonly kind: "begin" | "commit" | "rollback" };

/** What a connection hears back: rows, or an error with its SQLSTATE. */
export type Reply = { readonly rows: Fields[] } | { readonly error: string; readonly code: string };

/** A session of the server. */
export class ServerSession {
  readonly settings = new Map<string, string>();
  readonly staged = new Map<string, string[]>();
  isOpen = true;
  idleMs: number | null = null;
  lockTimeoutMs: number | null = null;
  activeAt = 0;
  inTransaction = false;
  /** The copy that a writing transaction works on, and what it did to it. */
  work: SimTables | null = null;
  done: Effect[] = [];
  readonly waiting: { readonly message: Message; readonly reply: (reply: Reply) => void }[] = [];
  isBlocked = false;

  constructor(readonly no: number, readonly onEnd: () => void) {}
}

/** Told of everything that becomes durable. */
export interface ServerEvents {
  /** A batch is in the journal. */
  onAppend(seq: number, payload: string): void;
}

/** One server. */
export class Server {
  tables = new SimTables();
  isUp = true;
  /** When the server started last. */
  startedAt = -Infinity;
  /** Whoever holds the lease's lock. */
  leaseHolder: ServerSession | null = null;
  readonly sessions = new Set<ServerSession>();
  readonly #time: VirtualTime;
  readonly #events: ServerEvents;
  #writer: ServerSession | null = null;
  #sessionsMade = 0;

  constructor(time: VirtualTime, events: ServerEvents) {
    this.#time = time;
    this.#events = events;
  }

  /** Opens a session; null while the server is down. */
  open(onEnd: () => void): ServerSession | null {
    if (!this.isUp) return null;
    const session = new ServerSession(++this.#sessionsMade, onEnd);
    this.sessions.add(session);
    return session;
  }

  /** Takes a message of a session, in the order of the calls. */
  receive(session: ServerSession, message: Message, reply: (reply: Reply) => void): void {
    if (!session.isOpen) return;
    session.activeAt = this.#time.now;
    session.waiting.push({ message, reply });
    this.#work(session);
  }

  /** Ends a session: its transaction is undone, and its locks are free. */
  end(session: ServerSession): void {
    if (!session.isOpen) return;
    session.isOpen = false;
    session.waiting.length = 0;
    this.sessions.delete(session);
    if (this.leaseHolder === session) this.leaseHolder = null;
    session.onEnd();
    this.#finish(session);
  }

  /** Ends every session at once, and takes none for a while. */
  crash(downMs: number): void {
    this.isUp = false;
    for (const session of [...this.sessions]) this.end(session);
    this.#time.after(downMs, WORLD, () => {
      this.isUp = true;
      this.startedAt = this.#time.now;
    });
  }

  /** Ends the sessions that hold the lock of writing transactions, but not the one that asks. */
  endStaleWriters(asking: ServerSession): void {
    if (this.#writer !== null && this.#writer !== asking) this.end(this.#writer);
  }

  /** How long the server has been up. */
  get upMs(): number {
    return this.#time.now - this.startedAt;
  }

  /** Has a session ended after a silence. */
  setIdleTimeout(session: ServerSession, ms: number): void {
    const isNew = session.idleMs === null;
    session.idleMs = ms;
    if (isNew) this.#watchIdle(session);
  }

  #watchIdle(session: ServerSession): void {
    const silentMs = this.#time.now - session.activeAt;
    const limit = session.idleMs as number;
    if (silentMs >= limit) return this.end(session);
    this.#time.after(Math.max(1, limit - silentMs), WORLD, () => {
      if (session.isOpen) this.#watchIdle(session);
    });
  }

  #work(session: ServerSession): void {
    while (!session.isBlocked && session.isOpen) {
      const next = session.waiting.shift();
      if (next === undefined) return;
      if (this.#mustWait(session, next.message)) {
        session.waiting.unshift(next);
        this.#block(session);
        return;
      }
      let answer: Reply;
      try {
        answer = { rows: this.#execute(session, next.message) };
      } catch (error) {
        answer = { error: (error as Error).message, code: "XX000" };
      }
      next.reply(answer);
    }
  }

  #mustWait(session: ServerSession, message: Message): boolean {
    if (!session.inTransaction || session.work !== null || this.#writer === null) return false;
    return message.kind === "copy" || message.kind === "query" && statementOf(message.text).kind === "write";
  }

  #block(session: ServerSession): void {
    session.isBlocked = true;
    if (session.lockTimeoutMs === null) return;
    this.#time.after(session.lockTimeoutMs, WORLD, () => {
      if (!session.isBlocked) return;
      session.isBlocked = false;
      session.waiting.shift()?.reply({ error: "lock timeout", code: "55P03" });
      this.#work(session);
    });
  }

  #execute(session: ServerSession, message: Message): Fields[] {
    switch (message.kind) {
      case "begin":
        session.inTransaction = true;
        return [];
      case "commit":
        for (const effect of session.done) effect(this.tables);
        this.#finish(session);
        return [];
      case "rollback":
        this.#finish(session);
        return [];
      case "copy":
        return this.#copy(session, message.table, message.lines);
      case "query":
        return this.#query(session, message.text, message.params);
    }
  }

  #copy(session: ServerSession, table: string, lines: readonly string[]): Fields[] {
    if (table.startsWith("staged_")) {
      session.staged.set(table.slice("staged_".length), [...lines]);
      return [];
    }
    const spec = TABLES.find(({ name }) => name === table);
    if (spec === undefined) throw new Error(`COPY into ${table}`);
    return this.#apply(session, (tables) => {
      tables.copy(spec, lines, true);
      return [];
    });
  }

  #query(session: ServerSession, text: string, params: readonly Param[]): Fields[] {
    const statement = statementOf(text);
    switch (statement.kind) {
      case "session":
        return statement.run(this, session, params);
      case "read":
        return statement.run(session.work ?? this.tables, params);
      case "write":
        return this.#apply(session, statement.make(params, session));
      case "append": {
        const seq = statement.run(this.tables, session, params);
        if (seq === null) return [];
        this.#events.onAppend(seq, this.tables.journal.get(seq) as string);
        return [{ seq }];
      }
    }
  }

  /** Does what a statement of a transaction does to its copy; the commit does it again to the tables. */
  #apply(session: ServerSession, effect: Effect): Fields[] {
    if (!session.inTransaction) return effect(this.tables);
    if (session.work === null) {
      this.#writer = session;
      session.work = this.tables.clone();
    }
    session.done.push(effect);
    return effect(session.work);
  }

  #finish(session: ServerSession): void {
    session.inTransaction = false;
    session.work = null;
    session.done = [];
    session.staged.clear();
    session.lockTimeoutMs = null;
    session.isBlocked = false;
    if (this.#writer !== session) return;
    this.#writer = null;
    for (const other of this.sessions) {
      if (!other.isBlocked) continue;
      other.isBlocked = false;
      this.#work(other);
    }
  }
}
