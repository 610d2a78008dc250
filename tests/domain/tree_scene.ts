// The scenes of a tree's users by their ids, with one clock, and what the tests of shares ask of them.

import { numberOf } from "../../src/domain/values/amount.ts";
import type { CommandName, Commands } from "../../src/domain/command.ts";
import type { Catalog, PackDocument, PlanDocument } from "../../src/domain/catalog/catalog.ts";
import type { UserState } from "../../src/domain/state/user.ts";
import { callOf } from "./scene_input.ts";
import { Scene } from "./scene.ts";

/** Users in a tree. */
export class TreeScene {
  readonly #scenes = new Map<string, Scene>();
  readonly #first: Scene;
  #count = 0;

  constructor(plans: readonly PlanDocument[], packs: readonly PackDocument[] = []) {
    // The model of calls knows no shares.
    this.#first = new Scene(plans, undefined, packs, { key: ++this.#count, id: "first", isCompared: false });
  }

  /** The scene of a user, which is made for a new id. */
  scene(id: string): Scene {
    const known = this.#scenes.get(id);
    if (known !== undefined) return known;
    const scene = new Scene([], undefined, [], { key: ++this.#count, id, beside: this.#first });
    this.#scenes.set(id, scene);
    return scene;
  }

  state(id: string): UserState {
    return this.scene(id).state;
  }

  get now(): number {
    return this.#first.now;
  }

  set now(now: number) {
    for (const scene of [this.#first, ...this.#scenes.values()]) scene.now = now;
  }

  subscribe(id: string, plan: string): void {
    this.scene(id).subscribe(plan);
  }

  /** Puts a user under another one. */
  put(id: string, parentId: string, limits?: Record<string, number>): void {
    const code = this.scene(id).under(this.scene(parentId), limits);
    if (code !== "ok") throw new Error(`setParent was refused: ${code}`);
  }

  ask<Name extends CommandName>(id: string, name: Name, input: Commands[Name]["input"]) {
    return this.scene(id).ask(name, input);
  }

  /** Reserves; the id of the reservation, or the reasons against it. */
  reserve(id: string, count: number, ttlMs: number | null = null): { hold: string | null; reasons: string } {
    const answer = this.ask(id, "reserve", { ...callOf(count, {}), ttlMs, prompt: null });
    return { hold: answer.hold?.reservationId ?? null, reasons: whyNot(answer) };
  }

  /** Why can-use refuses, and who; "" where it does not. */
  reason(id: string, count: number): string {
    return whyNot(this.scene(id).canUse(count));
  }

  /** The same under another catalog. */
  reasonUnder(catalog: Catalog, id: string, count: number): string {
    const scene = this.scene(id);
    const inForce = scene.catalog;
    scene.catalog = catalog;
    const reason = this.reason(id, count);
    scene.catalog = inForce;
    return reason;
  }

  /** Tracks; the code of the answer. */
  track(id: string, count: number): string {
    const { result } = this.scene(id).do("track", { ...callOf(count, {}), costCents: null });
    return result.ok ? result.answer.matchStatus : result.refusal.code;
  }

  commit(id: string, reservationId: string, count?: number): void {
    this.scene(id).commit(reservationId, count === undefined ? {} : { actual: { count } });
  }

  release(id: string, reservationId: string): string {
    return this.scene(id).release(reservationId);
  }

  /** Makes a user an alias of another. */
  merge(from: string, to: string): void {
    this.scene(from).mergeInto(this.scene(to));
    this.#scenes.delete(from);
  }

  /** The user's shares at the users above, nearest first: [count, quota] of each group. */
  shares(id: string): (readonly [number, number | null])[][] {
    const { levels } = this.ask(id, "usage", { event: null, withLevels: true });
    return (levels ?? []).map(({ counters }) =>
      counters.map(({ member }) => {
        if (member === undefined) throw new Error("A level shows no share");
        return [numberOf(member.count), member.quota === null ? null : numberOf(member.quota)] as const;
      })
    );
  }
}

function whyNot(
  { reasons, refusedBy }: { readonly reasons: readonly string[]; readonly refusedBy: readonly string[] },
) {
  return reasons.length === 0 ? "" : `${reasons.join(" ")} by ${refusedBy.join(" ")}`;
}
