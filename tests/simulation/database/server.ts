// The simulated database server: sessions with their names, settings and transactions, locks, idle sessions that it ends,
// and restarts. Only committed changes survive a restart. Of commits that did not wait for the disk the last ones may be
// lost, back to the last commit that waited. It understands only the statements of the product (`statements.ts`).
//
// Simpler than a server: transactions that write in sessions of one name, which are those of one node, run one after
// another, from their first write to their end. Between nodes there are the locks that statements name: of cells, of
// the registry's row, of a term's range of the journal. A statement outside of a transaction does not wait for rows.

import type { Param } from "../../../src/storage/database.ts";
import type { Fields } from "../../support/memory_store.ts";
import { type Lock, Locks } from "./locks.ts";
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
  /** Whether its transaction sees one moment throughout. */
  isSnapshot = false;
  /** Whether the commit of its transaction does not wait for the disk. */
  commitsLater = false;
  /** The copy that a transaction works on, how many commits it has seen, and what the transaction did to it. */
  work: SimTables | null = null;
  commitsSeen = 0;
  done: Effect[] = [];
  readonly waiting: Waiting[] = [];
  /** What waits for a lock; null while nothing does. */
  blockedOn: Waiting | null = null;

  /** @param name of the application */
  constructor(readonly no: number, public name: string, readonly onEnd: () => void) {}
}

/** A message that is not executed yet. */
interface Waiting {
  readonly message: Message;
  readonly reply: (reply: Reply) => void;
}

/** Called with everything that becomes durable. */
interface ServerEvents {
  /** A batch is in the journal. */
  onAppend(seq: number, payload: string): void;
}

/** A commit that did not wait is on the disk after this time at the latest: three times `wal_writer_delay`. */
const LOG_WRITTEN_MS = 600;

/** One server. */
export class Server {
  tables = new SimTables();
  isUp = true;
  /** When the server started last. */
  startedAt = -Infinity;
  /** Until when it is frozen: what is sent to it waits. */
  frozenUntil = 0;
  readonly advisory = new Locks<ServerSession>();
  readonly sessions = new Set<ServerSession>();
  readonly #time: VirtualTime;
  readonly #events: ServerEvents;
  /** Locks of rows, each until the end of a transaction. */
  readonly #rows = new Locks<ServerSession>();
  #commits = 0;
  #sessionsMade = 0;
  /** The tables before each commit that is not on the disk yet, in their order. */
  #unwritten: SimTables[] = [];

  constructor(time: VirtualTime, events: ServerEvents) {
    this.#time = time;
    this.#events = events;
    this.tables.time = time;
  }

  /** Opens a session; null while the server is down. */
  open(name: string, onEnd: () => void): ServerSession | null {
    if (!this.isUp) return null;
    const session = new ServerSession(++this.#sessionsMade, name, onEnd);
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
    session.blockedOn = null;
    this.sessions.delete(session);
    this.advisory.giveAll(session);
    session.onEnd();
    this.#finish(session);
  }

  /** Commits that a crash may undo. */
  get unwritten(): number {
    return this.#unwritten.length;
  }

  /** Ends every session at once, and takes none for a while. The last commits are undone, of those that may be. */
  crash(downMs: number, undone: number): void {
    this.isUp = false;
    for (const session of [...this.sessions]) this.end(session);
    const before = this.#unwritten.at(-undone);
    if (undone > 0 && before !== undefined) {
      before.onForgotten = this.tables.onForgotten;
      this.tables = before;
    }
    this.#unwritten = [];
    this.#time.after(downMs, WORLD, () => {
      this.isUp = true;
      this.startedAt = this.#time.now;
    });
  }

  /** Ends the sessions that pass a test, except the caller's. */
  endWhere(asking: ServerSession, isMeant: (session: ServerSession) => boolean): void {
    for (const session of [...this.sessions]) if (session !== asking && isMeant(session)) this.end(session);
  }

  /** Releases an advisory lock; a session that waits for it may go on. */
  giveAdvisory(lock: Lock, session: ServerSession): void {
    this.advisory.give(lock, session);
    this.#wakeAll();
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
    while (session.blockedOn === null && session.isOpen) {
      const next = session.waiting.shift();
      if (next === undefined) return;
      if (this.#mustWait(session, next.message)) return this.#block(session, next);
      this.#answer(session, next);
    }
  }

  #answer(session: ServerSession, { message, reply }: Waiting): void {
    let answer: Reply;
    try {
      answer = { rows: this.#execute(session, message) };
    } catch (error) {
      answer = { error: (error as Error).message, code: "XX000" };
    }
    reply(answer);
  }

  #mustWait(session: ServerSession, message: Message): boolean {
    if (message.kind === "query") {
      const advisory = statementOf(message.text).waitsFor?.(message.params);
      if (advisory !== undefined && !this.advisory.isFree(advisory, session)) return true;
    }
    return this.#locksOf(session, message).some((lock) => !this.#rows.isFree(lock, session));
  }

  /** The locks of rows that a message needs. */
  #locksOf(session: ServerSession, message: Message): readonly Lock[] {
    if (!session.inTransaction) return [];
    const own: Lock = { key: `node ${session.name}`, isShared: false };
    if (message.kind === "copy") return [own];
    if (message.kind !== "query") return [];
    const statement = statementOf(message.text);
    if (statement.kind !== "write") return [];
    return [own, ...statement.locks?.(message.params) ?? []];
  }

  #block(session: ServerSession, waiting: Waiting): void {
    session.blockedOn = waiting;
    if (session.lockTimeoutMs === null) return;
    this.#time.after(session.lockTimeoutMs, WORLD, () => {
      if (session.blockedOn !== waiting) return;
      session.blockedOn = null;
      waiting.reply({ error: "lock timeout", code: "55P03" });
      this.#work(session);
    });
  }

  /** Wakes the sessions that waited for a free lock, first come first served. */
  #wakeAll(): void {
    for (const session of [...this.sessions]) {
      const { blockedOn } = session;
      if (blockedOn === null || !session.isOpen || this.#mustWait(session, blockedOn.message)) continue;
      session.blockedOn = null;
      this.#answer(session, blockedOn);
      this.#work(session);
    }
  }

  #execute(session: ServerSession, message: Message): Fields[] {
    switch (message.kind) {
      case "begin":
        session.inTransaction = true;
        return [];
      case "commit":
        if (session.done.length > 0) this.#commit(session.commitsLater);
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
    for (const lock of this.#locksOf(session, { kind: "copy", table, lines })) this.#rows.take(lock, session);
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
        return statement.run(this.#seenBy(session), params);
      case "write":
        for (const lock of this.#locksOf(session, { kind: "query", text, params })) {
          this.#rows.take(lock, session);
        }
        if (statement.locks !== undefined && session.work !== null) this.#refresh(session);
        return this.#apply(session, statement.make(params, session));
      case "append": {
        this.#unwritten = [];
        const seq = statement.run(this.tables, session, params);
        if (seq === null) return [];
        this.#events.onAppend(seq, this.tables.journal.get(seq) as string);
        return [{ seq }];
      }
    }
  }

  /** What a read of a session sees: what is committed, and what its own transaction has done. */
  #seenBy(session: ServerSession): SimTables {
    if (session.isSnapshot && session.work === null) session.work = this.tables.clone();
    if (session.work === null) return this.tables;
    this.#refresh(session);
    return session.work;
  }

  /** Brings what others have committed since into the copy of a transaction. */
  #refresh(session: ServerSession): void {
    if (session.isSnapshot || session.commitsSeen === this.#commits) return;
    session.commitsSeen = this.#commits;
    const work = session.work = this.tables.clone();
    for (const effect of session.done) effect(work);
  }

  /** Does what a statement of a transaction does to its copy; the commit does it again to the tables. */
  #apply(session: ServerSession, effect: Effect): Fields[] {
    if (!session.inTransaction) {
      this.#commit(false);
      return effect(this.tables);
    }
    if (session.work === null) {
      session.work = this.tables.clone();
      session.commitsSeen = this.#commits;
    }
    session.done.push(effect);
    return effect(session.work);
  }

  /** Counts a commit, before it changes the tables. A commit that waits for the disk makes all earlier ones durable. */
  #commit(isLater: boolean): void {
    this.#commits += 1;
    if (!isLater) {
      this.#unwritten = [];
      return;
    }
    const before = this.tables.clone();
    this.#unwritten.push(before);
    this.#time.after(LOG_WRITTEN_MS, WORLD, () => {
      this.#unwritten = this.#unwritten.slice(this.#unwritten.indexOf(before) + 1);
    });
  }

  #finish(session: ServerSession): void {
    session.inTransaction = false;
    session.commitsLater = false;
    session.isSnapshot = false;
    session.work = null;
    session.done = [];
    session.staged.clear();
    session.lockTimeoutMs = null;
    session.blockedOn = null;
    this.#rows.giveAll(session);
    this.#wakeAll();
  }
}
