// One member: proves that it lives, knows who else does, takes the cells that should be its own, and hands over those that
// should be another's. The embedded store and a lone process run the same code: all cells are theirs, and no channel is
// opened.
//
// Two things go on side by side. The beat, once a second and never skipped, says that this member lives and reads the
// version of the registry; by it alone this member may answer (rule 3 of the cluster's design). A round looks at members
// and cells and moves cells; rounds run one after another, after each beat and after each sign that something changed.

import { Unavailable } from "../../actors/port.ts";
import type { Reply } from "../channel/hub.ts";
import { isLed } from "../process/clock.ts";
import { CELL_LIMITS, LEASE_LIMITS } from "../process/limits.ts";
import { log, messageOf } from "../process/log.ts";
import { type CellRow, readCells } from "../storage/members/cell_store.ts";
import { endMember, type MemberRow, readMembers } from "../storage/members/member_store.ts";
import { handOver } from "./hand_over.ts";
import type { MemberParts, Note } from "./parts.ts";
import { wantedOwners } from "./rendezvous.ts";
import { takeCells } from "./take_over.ts";

/** An orphan is anybody's when nobody took it for so many rounds. */
const ORPHAN_ROUNDS = 2;

/** The life of one member within one term. */
export class Member {
  readonly parts: MemberParts;
  #share: number;
  #members: readonly MemberRow[] = [];
  /** Members whose process is gone, although their last beat is young. */
  readonly #gone = new Set<number>();
  /** For how many rounds nobody has owned a cell. */
  readonly #orphaned = new Map<number, number>();
  #timer: ReturnType<typeof setInterval> | null = null;
  #round: Promise<void> = Promise.resolve();
  #isRoundWanted = false;
  #isClosed = false;
  #looked: Promise<void> | null = null;
  /** Since when some living owner cannot be reached, or there is none at all; null while all can. */
  #unreachableSince: number | null = null;

  constructor(parts: MemberParts, share: number) {
    this.parts = parts;
    this.#share = share;
  }

  get term(): number {
    return this.parts.writer.term;
  }

  /** Every member that has not ended, as last read. */
  get members(): readonly MemberRow[] {
    return this.#members;
  }

  /** Reads the registry, says so, and takes the cells that are free and should be its own. */
  async open(): Promise<void> {
    await this.#beat();
    // In turn: a channel that opens meanwhile asks for a round, and two that take the same cell would load it twice.
    await this.#inTurn(() => this.#lookAndMove());
    if (this.parts.database.kind === "embedded") return;
    this.#timer = setInterval(() => void this.#keepAlive(), LEASE_LIMITS.beatEveryMs);
  }

  /** Asks for a round soon: something may have changed. */
  wake(): void {
    if (this.#isRoundWanted || this.#isClosed) return;
    this.#isRoundWanted = true;
    void this.#inTurn(async () => {
      this.#isRoundWanted = false;
      await this.#lookAndMove();
    }).catch((error) => this.#warn("A look at the other members failed", error));
  }

  /** Says in the own row, and to everybody, that a version of the registry is in force here. */
  async announce(version: number): Promise<void> {
    this.parts.hub?.noteAll({ registry: version } satisfies Note);
    await this.#beat();
  }

  /** Puts a version of the registry in force that another member has. */
  async reach(version: number): Promise<void> {
    if (version <= this.parts.registry.version) return;
    await this.parts.changes.reach(version);
    // The confirmation need not be waited for by whoever asked.
    this.#beat().catch((error) => this.#warn("A beat failed", error));
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

  /** @param isRefused nobody listens at its address any more: its process is gone */
  onLost(term: number, isRefused: boolean): void {
    if (!isRefused || this.#isClosed || this.#gone.has(term)) return;
    this.#gone.add(term);
    this.parts.owners.forget(term);
    endMember(this.parts.database, term).then(() => this.wake(), () => this.wake());
  }

  /**
   * Whether calls for every cell that has an owner can be answered here, or passed on. A cell without one, as for a while
   * after its owner was frozen, says nothing against this member: no other would do better.
   */
  get isReady(): boolean {
    const since = this.#unreachableSince;
    return since === null || performance.now() - since < CELL_LIMITS.unreachableMs;
  }

  /** A member that a call for another one may go through, where there is no channel between the two (rule 14). */
  relayTo(owner: number): number | null {
    const { hub } = this.parts;
    const other = this.#members.find(({ term }) => term !== owner && term !== this.term && hub?.isOpen(term));
    return other?.term ?? null;
  }

  /** Whether there is a channel to a member, or it is this one. */
  reaches(term: number): boolean {
    return term === this.term || this.parts.hub?.isOpen(term) === true;
  }

  /** Reads anew who owns what; calls that look at the same time share one look. */
  lookForOwners(): Promise<void> {
    return this.#looked ??= this.#lookSoon().finally(() => this.#looked = null);
  }

  async #lookSoon(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, CELL_LIMITS.lookEveryMs));
    this.#learn(await readCells(this.parts.database));
  }

  /** Passes a call of another member to its owner, to which that member has no channel. */
  async relay(call: unknown, owner: number): Promise<Reply | null> {
    const { hub } = this.parts;
    return hub?.isOpen(owner) === true ? await hub.call(owner, call) : null;
  }

  /**
   * Hands the cells over and takes none any more; this process goes on as a front. Cells in which a call takes long stay
   * here, with their doors open, until it is asked again or the term ends.
   *
   * @param graceMs how long the last calls may take
   * @returns whether somebody is there to take them
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
    const free = doors.held.filter((cell) => !doors.isPinned(cell));
    if (free.length === 0 || await handOver(this.parts, free, null)) return;
    // Some call is slow: one cell at a time, only its own cell has to wait for it.
    for (const cell of free) {
      if (performance.now() < until) await handOver(this.parts, [cell], null);
    }
  }

  /** Ends the beats; the row says that this member answers nothing any more. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (this.#timer !== null) clearInterval(this.#timer);
    await this.parts.hub?.close();
  }

  async #keepAlive(): Promise<void> {
    this.parts.writer.noticeSilence();
    try {
      await this.#beat();
    } catch (error) {
      this.#warn("A beat failed", error);
    }
    this.wake();
  }

  /** One beat; a second one follows at once when the first has brought a new version of the registry. */
  async #beat(): Promise<void> {
    const { writer, registry, changes, clock } = this.parts;
    while (true) {
      const told = registry.version;
      const { version, now, prove } = await writer.beat({ share: this.#share, registryVersion: told });
      if (isLed(clock) && this.parts.hub !== null) clock.follow(now);
      await changes.reach(version);
      prove();
      if (registry.version === told) return;
    }
  }

  async #lookAndMove(): Promise<void> {
    await this.#look();
    try {
      await this.#moveCells();
    } finally {
      // Only now: what was free a moment ago may have come here.
      this.#noteReach();
    }
  }

  async #look(): Promise<void> {
    const { database, hub } = this.parts;
    const cells = await readCells(database);
    this.#members = await readMembers(database);
    hub?.setPeers(
      this.#others().flatMap(({ term, address }) => address === null ? [] : [{ term, address }]),
    );
    this.#learn(cells);
  }

  #learn(cells: readonly CellRow[]): void {
    const { owners, term } = this.parts;
    const living = new Set(this.living.map(({ term }) => term));
    for (const { cell, term: owner } of cells) {
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

  /** Members that may answer, this one too. */
  get living(): readonly MemberRow[] {
    return this.#members.filter(({ term, hasEnded, silentMs }) =>
      term === this.term || !hasEnded && silentMs < LEASE_LIMITS.validMs && !this.#gone.has(term)
    );
  }

  #others(): MemberRow[] {
    return this.living.filter(({ term }) => term !== this.term);
  }

  /** Takes and hands over what should change hands. */
  async #moveCells(): Promise<void> {
    const { term, owners } = this.parts;
    if (this.#isClosed || term.hasEnded || this.#share === 0) return;
    const takers = this.living.filter(({ term, share }) => term === this.term || share > 0);
    const wanted = wantedOwners(takers.map(({ term }) => term));
    const free = wanted.flatMap((_, cell) =>
      !term.doors.isHere(cell) && owners.of(cell) === null ? [cell] : []
    );
    await takeCells(this.parts, free.filter((cell) => wanted[cell] === this.term || this.#isOrphan(cell)));
    for (const cell of [...this.#orphaned.keys()]) if (!free.includes(cell)) this.#orphaned.delete(cell);
    await this.#handOverOne(wanted);
  }

  /** Counts a round in which nobody took a free cell. */
  #isOrphan(cell: number): boolean {
    const rounds = (this.#orphaned.get(cell) ?? 0) + 1;
    this.#orphaned.set(cell, rounds);
    return rounds > ORPHAN_ROUNDS;
  }

  /** Hands one cell over, to a member that is sure to take it; the next one follows in another round. */
  async #handOverOne(wanted: readonly (number | null)[]): Promise<void> {
    const { doors } = this.parts.term;
    const ready = new Set(this.#others().filter((member) => this.#isSettled(member)).map(({ term }) => term));
    const cell = doors.held.find((held) => ready.has(wanted[held] as number) && !doors.isPinned(held));
    if (cell === undefined) return;
    if (await handOver(this.parts, [cell], wanted[cell] as number)) this.wake();
  }

  #isSettled({ term, livedMs, silentMs }: MemberRow): boolean {
    return livedMs >= CELL_LIMITS.settledMs && silentMs <= CELL_LIMITS.freshMs &&
      this.parts.hub?.isOpen(term) === true;
  }

  /** Rounds, and what moves cells besides, run one after another. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#round.then(() => {
      if (this.#isClosed) throw new Unavailable("This member has ended");
      return work();
    });
    this.#round = turn.then(() => {}, () => {});
    return turn;
  }

  #warn(message: string, error: unknown): void {
    if (!this.#isClosed) log("warn", message, { error: messageOf(error) });
  }
}
