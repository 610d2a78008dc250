// What the load generator is told and what it reports: plain JSON both ways, because the generator is a process of
// its own. It also owns the users of the benchmark, so that seeding and loading can't disagree about their names.

/** How many users "spread" means. */
export const USERS = 10_000;

/** What a reserve takes its quota from. */
export type PaidBy = "plan" | "credits";

/** The event that a reserve names: the plan covers one, credits alone pay for the other. */
export const EVENTS: Readonly<Record<PaidBy, string>> = { plan: "image.render", credits: "video.render" };

/** Whether requests go round all users or all to one of them. */
export type Spread = "spread" | "hot";

/** One run of the generator. */
export interface LoadPlan {
  port: number;
  connections: number;
  warmupMs: number;
  measureMs: number;
  users: Spread;
  paidBy: PaidBy;
  /** Settle each reservation with a commit on the same connection. */
  pair: boolean;
  authorization: string;
  /** Seeds the order of the users. */
  seed: number;
}

/** What one kind of call did while it was measured. */
export interface CallReport {
  requests: number;
  requestsPerSecond: number;
  p50Ms: number;
  p99Ms: number;
  maxMs: number;
}

/** What a run reports. Failures are kept apart and never count as requests. */
export interface LoadReport {
  seconds: number;
  reserve: CallReport;
  commit: CallReport | null;
  all: CallReport;
  /** Answers other than 200, by status, and reserves that were not allowed, as "refused". */
  failures: Record<string, number>;
  /** The first failed answer's body, to say why. */
  firstFailure: string | null;
}

/** The name of user n. */
export function userId(n: number): string {
  return `user-${n}`;
}

/** The numbers 0 to count - 1 in an order that depends on the seed only. */
export function shuffled(count: number, seed: number): Uint32Array {
  const order = Uint32Array.from({ length: count }, (_, i) => i);
  let state = seed >>> 0;
  for (let i = count - 1; i > 0; i--) {
    // mulberry32: a small generator with a full period of 2^32, enough to shuffle.
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    const j = ((t ^ (t >>> 14)) >>> 0) % (i + 1);
    const kept = order[i]!;
    order[i] = order[j]!;
    order[j] = kept;
  }
  return order;
}
