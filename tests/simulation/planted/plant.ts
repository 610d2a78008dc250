// Plants a bug: replaces a method or getter of the product until the bug is removed.

import type { Troubles } from "../troubles.ts";

/** A bug, and how to take it out again. */
export interface PlantedBug {
  readonly name: string;
  /** Processes of the worlds in which it is looked for; left out: the seeds say. */
  readonly nodes?: number;
  /** Databases of the worlds. Default 1. */
  readonly databases?: number;
  /** What goes wrong in them, where it has to be something rare. */
  readonly troubles?: Troubles;
  /** Whether the worlds have Stripe. Default false. */
  readonly stripe?: boolean;
  /** Whether users have parents. Default false. */
  readonly trees?: boolean;
  /** Whether members of an organisation call at once. Default false. */
  readonly crew?: boolean;
  /** Whether users have keys of their own. Default false. */
  readonly userKeys?: boolean;
  /** Whether clients send batches of events. Default false. */
  readonly batches?: boolean;
  /** Whether limit groups have periods of their own, in every workspace. Default false. */
  readonly windows?: boolean;
  /** Whether quota groups sell past their quotas. Default false. */
  readonly overage?: boolean;
  /** Whether every workspace has rates, overage or included packs. Default false. */
  readonly money?: boolean;
  /** Whether users of one workspace buy automatically. Default false. */
  readonly topUps?: boolean;
  /** Where the bug keeps a world busy without an end: the time after which it counts as found. Default `CALM_MS`. */
  readonly calmMs?: number;
  plant(): () => void;
}

/** Puts another method in place of one until the returned function is called. */
export function replace<Owner extends object, Name extends keyof Owner>(
  owner: Owner,
  name: Name,
  make: (original: Owner[Name]) => Owner[Name],
): () => void {
  const found = Object.getOwnPropertyDescriptor(owner, name) as PropertyDescriptor;
  Object.defineProperty(owner, name, { ...found, value: make(found.value as Owner[Name]) });
  return () => Object.defineProperty(owner, name, found);
}

/** The same for a getter. */
export function replaceGetter<Owner extends object, Name extends keyof Owner>(
  owner: Owner,
  name: Name,
  get: (this: Owner) => Owner[Name],
): () => void {
  const found = Object.getOwnPropertyDescriptor(owner, name) as PropertyDescriptor;
  Object.defineProperty(owner, name, { ...found, get });
  return () => Object.defineProperty(owner, name, found);
}
