// Who serves a database, as its tables say: the members, their cells, and what is wrong with them in plain words. The
// doctor, the admin API and the command line all say the same. Reading changes nothing, and what troubles there are is
// decided by a pure function.

import { LEASE_LIMITS } from "../process/limits.ts";
import type { Session } from "../storage/database.ts";
import { readCells } from "../storage/members/cell_store.ts";
import { type MemberRow, readMembers } from "../storage/members/member_store.ts";
import { readVersion } from "../storage/stores/registry_store.ts";

/** A member that was silent for so long and has no cells is history. */
const FORGOTTEN_MS = 60_000;

/** A member with the cells that it owns. */
export interface MemberFacts extends MemberRow {
  readonly cells: readonly number[];
}

/** The members of a database. */
export interface ClusterFacts {
  /** The version of workspaces, apps, keys and catalogs that must be in force in every member. */
  readonly registryVersion: number;
  readonly members: readonly MemberFacts[];
  /** Cells that no member owns. */
  readonly free: readonly number[];
}

/** The member that asks, and whom it has a channel to. */
export interface ClusterView {
  readonly term: number;
  reaches(term: number): boolean;
}

/** Something that is wrong. */
export interface Trouble {
  /** Whether calls fail because of it. */
  readonly isBad: boolean;
  readonly found: string;
  readonly advice: string;
}

/** Reads who serves a database. */
export async function readCluster(reader: Pick<Session, "query">): Promise<ClusterFacts> {
  const registryVersion = await readVersion(reader);
  // Whoever got a cell before this has a row after it.
  const cells = await readCells(reader);
  const members = await readMembers(reader);
  const known = new Set(members.map(({ term }) => term));
  return {
    registryVersion,
    members: members.map((member) => ({
      ...member,
      cells: cells.filter(({ term }) => term === member.term).map(({ cell }) => cell),
    })),
    free: cells.filter(({ term }) => term === null || !known.has(term)).map(({ cell }) => cell),
  };
}

/** Whether a member may answer: it sent a beat lately. */
export function isLiving({ hasEnded, silentMs }: MemberRow): boolean {
  return !hasEnded && silentMs < LEASE_LIMITS.validMs;
}

/**
 * What is wrong, the worst first; nothing where no member lives, which is no trouble of members.
 *
 * @param view null where no member asks: whom it reaches is then not known
 */
export function troublesOf(facts: ClusterFacts, view: ClusterView | null): Trouble[] {
  const living = facts.members.filter((member) => isLiving(member) || member.term === view?.term);
  if (living.length === 0) return [];
  return [
    ...cellTroubles(facts, living),
    ...silentTroubles(facts, living),
    ...reachTroubles(living, view),
    ...versionTroubles(facts, living),
    ...differences(living),
  ].sort((one, other) => Number(other.isBad) - Number(one.isBad));
}

function cellTroubles({ members, free }: ClusterFacts, living: readonly MemberFacts[]): Trouble[] {
  const orphans = members.filter((member) => !living.includes(member)).flatMap(({ cells }) => cells);
  const ownerless = [...free, ...orphans].sort((one, other) => one - other);
  if (ownerless.length === 0) return [];
  const found = `${named("cell", ownerless)} without an owner: calls for their workspaces are answered 503`;
  if (living.some(({ share }) => share > 0)) {
    const advice = "Somebody takes them within 12 s; if not, look at the logs of the processes that serve";
    return [{ isBad: true, found, advice }];
  }
  return [{ isBad: true, found, advice: "Only fronts serve: start a process without HOLDFAST_CELLS=none" }];
}

function silentTroubles({ members }: ClusterFacts, living: readonly MemberFacts[]): Trouble[] {
  const silent = members.filter((member) =>
    !living.includes(member) && !member.hasEnded &&
    (member.cells.length > 0 || member.silentMs < FORGOTTEN_MS)
  );
  return silent.map((member) => ({
    isBad: false,
    found: `${nameOf(member)} has been silent for ${secondsOf(member.silentMs)} s`,
    advice:
      "It is gone, frozen, or cut off from the database: look at it; the others take its cells by themselves",
  }));
}

function reachTroubles(living: readonly MemberFacts[], view: ClusterView | null): Trouble[] {
  if (view === null) return [];
  const away = living.filter(({ term }) => !view.reaches(term));
  return away.map((member) => ({
    isBad: false,
    found: `${nameOf(member)} cannot be reached from here`,
    advice:
      "Check its HOLDFAST_CLUSTER_ADDRESS and what lies between the two; calls take a way round by a third",
  }));
}

function versionTroubles({ registryVersion }: ClusterFacts, living: readonly MemberFacts[]): Trouble[] {
  const behind = living.filter((member) => member.registryVersion < registryVersion);
  return behind.map((member) => ({
    isBad: false,
    found: `${
      nameOf(member)
    } has version ${member.registryVersion} of the registry, and ${registryVersion} is in force`,
    advice:
      "It answers nothing before it has caught up, which takes a second; if it stays so, look at its log",
  }));
}

/** Fingerprints in which living members differ. */
function differences(living: readonly MemberFacts[]): Trouble[] {
  const names = new Set(living.flatMap(({ fingerprints }) => Object.keys(fingerprints)));
  return [...names].flatMap((name) => {
    const values = Map.groupBy(living, ({ fingerprints }) => fingerprints[name]);
    if (values.size < 2) return [];
    const sides = [...values.values()].map((members) => members.map(({ term }) => term).join(", "));
    const found = `members differ in ${name}: ${sides.join(" against ")}`;
    return [{ isBad: false, found, advice: "Start every process with the same program and settings" }];
  });
}

function nameOf({ term, address }: MemberRow): string {
  return address === null ? `member ${term}` : `member ${term} (${address})`;
}

function secondsOf(ms: number): number {
  return Math.round(ms / 1000);
}

/** "cells 0 to 12, 40". */
function named(what: string, numbers: readonly number[]): string {
  const runs: [number, number][] = [];
  for (const number of numbers) {
    const last = runs.at(-1);
    if (last !== undefined && last[1] === number - 1) last[1] = number;
    else runs.push([number, number]);
  }
  const texts = runs.map(([from, to]) => from === to ? String(from) : `${from} to ${to}`);
  return `${what}${numbers.length === 1 ? "" : "s"} ${texts.join(", ")}`;
}
