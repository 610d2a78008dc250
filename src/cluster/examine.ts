// The state of a cluster as its tables have it: nodes, cells, and findings in plain words. The doctor, the admin API and
// the command line show the same findings. Reading changes nothing, and a pure function makes the findings.

import { LEASE_LIMITS } from "../process/limits.ts";
import type { Session } from "../storage/database.ts";
import { readCells } from "../storage/nodes/cell_store.ts";
import { type NodeRow, readNodes } from "../storage/nodes/node_store.ts";
import { readSplits, type SplitRow } from "../storage/stores/split_store.ts";
import { readVersion } from "../storage/stores/registry_store.ts";

/** A silent node without cells is not reported any more after this time. */
const FORGOTTEN_MS = 60_000;

/** A node with the cells that it owns. */
export interface NodeFacts extends NodeRow {
  readonly cells: readonly number[];
}

/** The nodes of a database. */
export interface ClusterFacts {
  /** The version of the registry that must be in force in every node. */
  readonly registryVersion: number;
  readonly nodes: readonly NodeFacts[];
  /** Cells without an owner. */
  readonly free: readonly number[];
  /** The databases that were split off from it. */
  readonly splits: readonly SplitRow[];
}

/** The node that asks, and which nodes it has a channel to. */
export interface ClusterView {
  readonly term: number;
  reaches(term: number): boolean;
}

/** A finding: something that is wrong. */
export interface Trouble {
  /** Whether calls fail because of it. */
  readonly isBad: boolean;
  readonly found: string;
  readonly advice: string;
}

/** Reads the state of a cluster. */
export async function readCluster(reader: Pick<Session, "query">): Promise<ClusterFacts> {
  const registryVersion = await readVersion(reader);
  // Cells before nodes: every owner of a cell then has a row.
  const cells = await readCells(reader);
  const nodes = await readNodes(reader);
  const known = new Set(nodes.map(({ term }) => term));
  return {
    registryVersion,
    nodes: nodes.map((node) => ({
      ...node,
      cells: cells.filter(({ term }) => term === node.term).map(({ cell }) => cell),
    })),
    splits: await readSplits(reader),
    free: cells.filter(({ term, isMoved }) => !isMoved && (term === null || !known.has(term)))
      .map(({ cell }) => cell),
  };
}

/** Whether a node may answer: its last heartbeat is recent. */
export function isLiving({ hasEnded, silentMs }: NodeRow): boolean {
  return !hasEnded && silentMs < LEASE_LIMITS.validMs;
}

/**
 * Returns what is wrong, the worst first; an empty list when no node lives, which the callers report by themselves.
 *
 * @param view null where no node asks, as on the command line: reachability is then unknown
 */
export function troublesOf(facts: ClusterFacts, view: ClusterView | null): Trouble[] {
  const living = facts.nodes.filter((node) => isLiving(node) || node.term === view?.term);
  if (living.length === 0) return [];
  return [
    ...cellTroubles(facts, living),
    ...splitTroubles(facts),
    ...silentTroubles(facts, living),
    ...reachTroubles(living, view),
    ...versionTroubles(facts, living),
    ...differences(living),
  ].sort((one, other) => Number(other.isBad) - Number(one.isBad));
}

function cellTroubles({ nodes, free }: ClusterFacts, living: readonly NodeFacts[]): Trouble[] {
  const ofDead = nodes.filter((node) => !living.includes(node)).flatMap(({ cells }) => cells);
  const ownerless = [...free, ...ofDead].sort((one, other) => one - other);
  if (ownerless.length === 0) return [];
  const found = `${named("cell", ownerless)} without an owner: calls for their workspaces are answered 503`;
  if (living.some(({ share }) => share > 0)) {
    const advice = "Reassigned automatically within 12 s; if not, see the logs";
    return [{ isBad: true, found, advice }];
  }
  return [{ isBad: true, found, advice: "Only fronts serve: start a process without HOLDFAST_CELLS=none" }];
}

function splitTroubles({ splits }: ClusterFacts): Trouble[] {
  return splits.flatMap(({ to, state, cells, left }) => {
    if (state === "open") return [];
    const waiting = left.length === 0 ? [] : [{
      isBad: false,
      found: `${named("cell", left)} to be handed over to "${to}"`,
      advice: "Long calls keep their cells; if it takes minutes, see the logs",
    }];
    const handed = cells.length === 0 ? [] : [{
      isBad: true,
      found: `"${to}" does not serve ${
        named("cell", cells)
      } yet: calls for their workspaces are answered 503`,
      advice: `\`deno task admin stores split\` again shows what "${to}" waits for`,
    }];
    return [...waiting, ...handed];
  });
}

function silentTroubles({ nodes }: ClusterFacts, living: readonly NodeFacts[]): Trouble[] {
  const silent = nodes.filter((node) =>
    !living.includes(node) && !node.hasEnded &&
    (node.cells.length > 0 || node.silentMs < FORGOTTEN_MS)
  );
  return silent.map((node) => ({
    isBad: false,
    found: `${nameOf(node)} has been silent for ${secondsOf(node.silentMs)} s`,
    advice: "It is gone, frozen, or cut off from the database: look at it; other processes take its cells",
  }));
}

function reachTroubles(living: readonly NodeFacts[], view: ClusterView | null): Trouble[] {
  if (view === null) return [];
  const away = living.filter(({ term }) => !view.reaches(term));
  return away.map((node) => ({
    isBad: false,
    found: `${nameOf(node)} cannot be reached from here`,
    advice:
      "Check its HOLDFAST_CLUSTER_ADDRESS and the network between the two; requests are relayed meanwhile",
  }));
}

function versionTroubles({ registryVersion }: ClusterFacts, living: readonly NodeFacts[]): Trouble[] {
  const behind = living.filter((node) => node.registryVersion < registryVersion);
  return behind.map((node) => ({
    isBad: false,
    found: `${
      nameOf(node)
    } has version ${node.registryVersion} of the registry, and ${registryVersion} is in force`,
    advice: "It answers no calls until it has caught up, within a second; if it does not, look at its log",
  }));
}

/** Findings for fingerprints in which living nodes differ. */
function differences(living: readonly NodeFacts[]): Trouble[] {
  const names = new Set(living.flatMap(({ fingerprints }) => Object.keys(fingerprints)));
  return [...names].flatMap((name) => {
    const values = Map.groupBy(living, ({ fingerprints }) => fingerprints[name]);
    if (values.size < 2) return [];
    const sides = [...values.values()].map((nodes) => nodes.map(({ term }) => term).join(", "));
    const found = `processes differ in ${name}: ${sides.join(" against ")}`;
    return [{ isBad: false, found, advice: "Start every process with the same program and settings" }];
  });
}

function nameOf({ term, address }: NodeRow): string {
  return address === null ? `process ${term}` : `process ${term} (${address})`;
}

function secondsOf(ms: number): number {
  return Math.round(ms / 1000);
}

/** Lists numbers as ranges: "cells 0 to 12, 40". */
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
