// One node: proves that it lives, knows which others do, takes the cells that it should own, and hands over those that
// another node should own. A lone process and the embedded store run the same code: they own all cells and open no
// channel.
//
// Two loops run side by side. The heartbeat, once a second and never skipped, proves that this node lives and reads the
// version of the registry; it alone entitles this node to answer. A round reads nodes and cells and moves cells; rounds
// run one after another, after each heartbeat and after each sign of a change.

import { CELLS } from "../../actors/doors.ts";
import { Unavailable } from "../../actors/port.ts";
import type { Reply } from "../channel/hub.ts";
import { isLed } from "../process/clock.ts";
import { CELL_LIMITS, LEASE_LIMITS } from "../process/limits.ts";
import { log, messageOf } from "../process/log.ts";
import { sessionNameOf } from "../storage/journal/ranges.ts";
import { type CellRow, readCells } from "../storage/nodes/cell_store.ts";
import { endNode, endSessionsNamed, type NodeRow, readNodes } from "../storage/nodes/node_store.ts";
import { releaseStores } from "../storage/stores/split_store.ts";
import { handOver, handOverSome } from "./hand_over.ts";
import type { NodeParts, Note } from "./parts.ts";
import { wantedOwners } from "./rendezvous.ts";
import { beginTaking, type Taking } from "./take_over.ts";
import { rest, within } from "../process/rest.ts";

/** One node within one term. */
export class ClusterNode {
  readonly parts: NodeParts;
  #share: number;
  #nodes: readonly NodeRow[] = [];
  /** Nodes that died: the last heartbeat is recent, but the address refuses connections. */
  readonly #gone = new Set<number>();
  /** Since when each free cell has been seen as free. */
  readonly #freeSince = new Map<number, number>();
  /** The cells that go to another store. */
  readonly #leaving = new Set<number>();
  /** Since when `#leaving` has any; null while it is empty. */
  #leavingSince: number | null = null;
  /** Whether a new store may wait for its release. */
  #mayRelease = true;
  /** The cell of the last hand-over that was dropped: the next attempt begins behind it. */
  #lastDropped = -1;
  /** The cells that are being taken. */
  readonly #taking = new Set<number>();
  #timer: ReturnType<typeof setInterval> | null = null;
  #round: Promise<void> = Promise.resolve();
  #isRoundWanted = false;
  /** Whether the term ends in order, so that no further round begins. */
  #isEnding = false;
  #isClosed = false;
  #looked: Promise<void> | null = null;
  /** Since when a living owner cannot be reached, or no owner is known; null while all can be reached. */
  #unreachableSince: number | null = null;

  constructor(parts: NodeParts, share: number) {
    this.parts = parts;
    this.#share = share;
  }

  get term(): number {
    return this.parts.writer.term;
  }

  /** Every node that has not ended, as last read. */
  get nodes(): readonly NodeRow[] {
    return this.#nodes;
  }

  /** Reads the registry, confirms its version, and takes the free cells that this node should own. */
  async open(): Promise<void> {
    await this.#beat();
    // In turn: a channel that opens meanwhile asks for a round, and two rounds that take one cell would load it twice.
    const takings = await this.#inTurn(() => this.#lookAndMove());
    await Promise.all(takings.map(({ done }) => done));
    // The round did not wait for the replay of a dead owner, and on the embedded store no other round follows.
    this.#noteReach();
    if (this.parts.database.kind === "embedded") return;
    this.#timer = setInterval(() => void this.#keepAlive(), LEASE_LIMITS.beatEveryMs);
  }

  /** Asks for a round soon: something may have changed. */
  wake(): void {
    if (this.#isRoundWanted || this.#isEnding || this.#isClosed) return;
    this.#isRoundWanted = true;
    void this.#inTurn(async () => {
      this.#isRoundWanted = false;
      await this.#lookAndMove();
    }).catch((error) => this.#warn("Reading the other processes failed", error));
  }

  /** Writes into the own row that a version of the registry is in force here, and notifies all nodes. */
  async announce(version: number): Promise<void> {
    this.parts.hub?.noteAll({ registry: version } satisfies Note);
    await this.#beat();
  }

  /** Puts at least this version of the registry in force; another node has it. */
  async reach(version: number): Promise<void> {
    if (version <= this.parts.registry.version) return;
    await this.parts.changes.reach(version);
    // The caller need not wait for the confirmation.
    this.#beat().catch((error) => this.#warn("A heartbeat failed", error));
  }

  onNote(note: Note): void {
    if ("registry" in note) {
      this.reach(note.registry).catch((error) => this.#warn("The registry could not be read", error));
      return;
    }
    this.parts.owners.set(note.cells.filter((cell) => !this.parts.term.doors.isHere(cell)), note.term);
    if (note.term === null) this.wake();
  }

  onOpened(term: number): void {
    this.#gone.delete(term);
    this.wake();
  }

  /** @param isRefused whether its address refuses connections: its process is gone */
  onLost(term: number, isRefused: boolean): void {
    if (!isRefused || this.#isClosed || this.#gone.has(term)) return;
    this.#gone.add(term);
    this.parts.owners.forget(term);
    endNode(this.parts.database, term).then(() => this.wake(), () => this.wake());
  }

  /**
   * Whether this node can answer, or pass on, calls for every cell that has an owner. A cell without an owner does not
   * count: no other node could answer its calls either.
   */
  get isReady(): boolean {
    const since = this.#unreachableSince;
    return since === null || performance.now() - since < CELL_LIMITS.unreachableMs;
  }

  /** The term of a node that can relay a call to an owner; null without one. */
  relayTo(owner: number): number | null {
    const { hub } = this.parts;
    const other = this.#nodes.find(({ term }) => term !== owner && term !== this.term && hub?.isOpen(term));
    return other?.term ?? null;
  }

  /** Whether a node is this one, or there is a channel to it. */
  reaches(term: number): boolean {
    return term === this.term || this.parts.hub?.isOpen(term) === true;
  }

  /** Reads the owners anew; calls at the same time share one read. */
  lookForOwners(): Promise<void> {
    return this.#looked ??= this.#lookSoon().finally(() => this.#looked = null);
  }

  async #lookSoon(): Promise<void> {
    await rest(CELL_LIMITS.lookEveryMs);
    this.#learn(await readCells(this.parts.database));
  }

  /** Relays a call to an owner that the sender cannot reach; null if this node has no channel to it either. */
  async relay(call: unknown, owner: number): Promise<Reply | null> {
    const { hub } = this.parts;
    return hub?.isOpen(owner) === true ? await hub.call(owner, call) : null;
  }

  /**
   * Hands the cells over and takes no more; this node goes on as a front. Cells with a long call stay, and go on
   * accepting calls, until `leave` is called again or the term ends.
   *
   * @param graceMs how long the last calls may take
   * @returns whether another node can take the cells
   */
  async leave(graceMs: number): Promise<boolean> {
    const isTaken = () => this.#others().some(({ share, term }) => share > 0 && this.parts.hub?.isOpen(term));
    return await this.#inTurn(async () => {
      await this.#look();
      if (!isTaken()) return false;
      this.#share = 0;
      await this.#beat();
      await this.#handOverAll(performance.now() + graceMs);
      return true;
    });
  }

  async #handOverAll(until: number): Promise<void> {
    const { doors } = this.parts.term;
    let left = doors.held.filter((cell) => !doors.isPinned(cell));
    if (left.length === 0 || await handOver(this.parts, left, { to: null })) return;
    // A call is slow: only its own cell waits for it.
    while (left.length > 0 && performance.now() < until && !this.#isEnding) {
      const { cells } = await handOverSome(this.parts, left, { to: null });
      left = left.filter((cell) => !cells.includes(cell));
    }
  }

  /**
   * Seals the doors, and runs the last work on the cells after the running round; no other round follows. Heartbeats go on
   * until `close`.
   *
   * @param waitMs how long the running round may take
   * @throws Unavailable if it takes longer: the cells must not be touched beside it
   */
  async end(work: () => Promise<void>, waitMs: number): Promise<void> {
    this.#isEnding = true;
    this.parts.term.doors.seal();
    if (!await within(waitMs, this.#round)) throw new Unavailable("Cells were still being moved");
    await work();
  }

  /** Ends heartbeats and rounds, and closes the channels. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (this.#timer !== null) clearInterval(this.#timer);
    await this.parts.hub?.close();
  }

  async #keepAlive(): Promise<void> {
    this.parts.writer.lookAtLife();
    try {
      await this.#beat();
    } catch (error) {
      this.#warn("A heartbeat failed", error);
    }
    this.wake();
  }

  /** Sends a heartbeat, and at once another one if it brought a new version of the registry. */
  async #beat(): Promise<void> {
    const { writer, registry, changes, clock } = this.parts;
    while (true) {
      const confirmed = registry.version;
      const { version, now, prove } = await writer.beat({ share: this.#share, registryVersion: confirmed });
      if (isLed(clock) && this.parts.hub !== null) clock.follow(now);
      await changes.reach(version);
      prove();
      if (registry.version === confirmed) return;
    }
  }

  async #lookAndMove(): Promise<Taking[]> {
    await this.#look();
    try {
      return await this.#moveCells();
    } finally {
      // Only now: cells that were free before the move may be here.
      this.#noteReach();
    }
  }

  async #look(): Promise<void> {
    const { database, hub } = this.parts;
    const cells = await readCells(database);
    this.#nodes = await readNodes(database);
    await this.#endSilent(cells);
    hub?.setPeers(
      this.#others().flatMap(({ term, address }) => address === null ? [] : [{ term, address }]),
    );
    this.#learn(cells);
  }

  /** Ends the sessions of owners that have been silent for so long that they answer nothing, which frees their cells. */
  async #endSilent(cells: readonly CellRow[]): Promise<void> {
    const { database } = this.parts;
    for (const { term, hasEnded, silentMs } of this.#nodes) {
      if (term === this.term || hasEnded || silentMs < LEASE_LIMITS.silentMs) continue;
      if (cells.some((cell) => cell.term === term)) await endSessionsNamed(database, sessionNameOf(term));
    }
  }

  #learn(cells: readonly CellRow[]): void {
    const { owners, term } = this.parts;
    const living = new Set(this.living.map(({ term }) => term));
    this.#leaving.clear();
    for (const { cell, term: owner, isMoved, movesTo } of cells) {
      if (movesTo !== null) this.#leaving.add(cell);
      if (isMoved && !owners.isMoved(cell)) {
        owners.move(cell);
        this.#mayRelease = true;
      }
      if (isMoved) continue;
      if (term.doors.isHere(cell)) owners.set([cell], this.term);
      else owners.set([cell], owner !== null && owner !== this.term && living.has(owner) ? owner : null);
    }
  }

  #noteReach(): void {
    const { owners } = this.parts;
    const known = owners.all.filter((owner) => owner !== null);
    const isReached = known.length > 0 &&
      known.every((owner) => this.reaches(owner) || this.relayTo(owner) !== null);
    if (isReached) this.#unreachableSince = null;
    else this.#unreachableSince ??= performance.now();
  }

  /** Nodes that may answer, including this one. */
  get living(): readonly NodeRow[] {
    return this.#nodes.filter(({ term, hasEnded, silentMs }) =>
      term === this.term || !hasEnded && silentMs < LEASE_LIMITS.validMs && !this.#gone.has(term)
    );
  }

  #others(): NodeRow[] {
    return this.living.filter(({ term }) => term !== this.term);
  }

  /** Takes cells, and hands some over, where the owner should change; returns the takings, and long ones go on. */
  async #moveCells(): Promise<Taking[]> {
    const { term, owners } = this.parts;
    if (this.#isClosed || term.hasEnded || this.#share === 0) return [];
    await this.#split();
    const takers = this.living.filter(({ term, share }) => term === this.term || share > 0);
    const wanted = wantedOwners(takers.map(({ term }) => term));
    const free = wanted.flatMap((_, cell) =>
      !term.doors.isHere(cell) && !owners.isMoved(cell) && owners.of(cell) === null && !this.#taking.has(cell)
        ? [cell]
        : []
    );
    const asked = free.filter((cell) => wanted[cell] === this.term || this.#isStale(cell));
    const takings = await this.#take(asked);
    for (const cell of [...this.#freeSince.keys()]) if (!free.includes(cell)) this.#freeSince.delete(cell);
    await this.#handOverSome(wanted);
    return takings;
  }

  /** Takes cells, and waits for those that no dead owner holds up. */
  async #take(asked: readonly number[]): Promise<Taking[]> {
    const takings = await beginTaking(this.parts, asked);
    for (const { cells, done, isLong } of takings) {
      for (const cell of cells) this.#taking.add(cell);
      done.catch((error) => {
        if (isLong) this.#warn("Taking cells over failed", error);
      }).finally(() => {
        for (const cell of cells) this.#taking.delete(cell);
        // This node may have begun to leave meanwhile.
        if (isLong && this.#share === 0) this.#inTurn(() => this.#handOverAll(0)).catch(() => {});
      });
    }
    await Promise.all(takings.flatMap(({ isLong, done }) => isLong ? [] : [done]));
    return takings;
  }

  /** Hands cells over that go to another store, and releases that store once it has all of them. */
  async #split(): Promise<void> {
    const { database, owners, registry, changes } = this.parts;
    const own = this.#ownLeaving();
    if (own.length > 0 && await handOver(this.parts, own, { to: null, toStore: true })) {
      for (const cell of own) {
        owners.move(cell);
        this.#leaving.delete(cell);
      }
      this.#mayRelease = true;
      // A heartbeat would read it as well, and confirm it.
      await changes.catchUp();
      await this.announce(registry.version);
    }
    if (!this.#mayRelease || this.#leaving.size > 0) return;
    this.#mayRelease = owners.cells < CELLS && !await releaseStores(database);
  }

  /** The cells of this node to hand over to another store now: all of them, or, after a wait, those without a long call. */
  #ownLeaving(): number[] {
    const { doors } = this.parts.term;
    const own = doors.held.filter((cell) => this.#leaving.has(cell));
    this.#leavingSince = own.length === 0 ? null : this.#leavingSince ?? performance.now();
    const free = own.filter((cell) => !doors.isPinned(cell));
    const waitedMs = performance.now() - (this.#leavingSince ?? 0);
    return free.length === own.length || waitedMs > CELL_LIMITS.pinnedWaitMs ? free : [];
  }

  /** Whether a free cell has been free for so long that any node may take it. */
  #isStale(cell: number): boolean {
    const now = performance.now();
    const since = this.#freeSince.get(cell) ?? now;
    this.#freeSince.set(cell, since);
    return now - since > CELL_LIMITS.freeMs;
  }

  /** Hands cells over to a node that is sure to take them; the others follow in later rounds. */
  async #handOverSome(wanted: readonly (number | null)[]): Promise<void> {
    const { doors } = this.parts.term;
    const ready = new Set(this.#others().filter((node) => this.#isSettled(node)).map(({ term }) => term));
    const due = doors.held.filter((cell) =>
      ready.has(wanted[cell] as number) && !doors.isPinned(cell) && !this.#leaving.has(cell)
    );
    const first = due.find((cell) => cell > this.#lastDropped) ?? due[0];
    if (first === undefined) return;
    const to = wanted[first] as number;
    const toOne = due.filter((cell) => wanted[cell] === to && cell !== first);
    const { cells, isDone } = await handOverSome(this.parts, [first, ...toOne], { to });
    if (isDone) this.wake();
    else this.#lastDropped = cells[0] as number;
  }

  #isSettled({ term, livedMs, silentMs }: NodeRow): boolean {
    return livedMs >= CELL_LIMITS.settledMs && silentMs <= CELL_LIMITS.freshMs &&
      this.parts.hub?.isOpen(term) === true;
  }

  /** Runs work that moves cells, one after another. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#round.then(() => {
      if (this.#isEnding || this.#isClosed) throw new Unavailable("This process has left the cluster");
      return work();
    });
    this.#round = turn.then(() => {}, () => {});
    return turn;
  }

  #warn(message: string, error: unknown): void {
    if (!this.#isClosed) log("warn", message, { error: messageOf(error) });
  }
}
