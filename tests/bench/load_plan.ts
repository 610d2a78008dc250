// What the load generator receives and what it reports: plain JSON both ways, because the generator is a process of
// its own. It also owns the users of the benchmark, so that seeding and loading can't disagree about their names.

/** How many users "spread" means. */
export const USERS = 10_000;

/** The users that are the hot one, one after the other. */
export const HOT_USERS: readonly number[] = Array.from({ length: 16 }, (_, user) => user);

/** Calls after which another user is the hot one: Holdfast refuses a user's millionth open hold. */
export const HOT_CALLS = 200_000;

/** What a reserve takes its quota from. */
export type PaidBy = "plan" | "credits";

/** The event that a reserve names: the plan covers one, credits alone pay for the other. */
export const EVENTS: Readonly<Record<PaidBy, string>> = { plan: "image.render", credits: "video.render" };

/**
 * Whether requests go round all users, all to one of them, or each to a user that must be loaded first; or round a
 * thousand users, without a parent or as members of one account, which is below an organisation.
 */
export type Spread = "spread" | "hot" | "cold" | "thousand" | "members";

/** How many users the last two mean. */
export const MEMBERS = 1_000;
export const ACCOUNT = "account";
export const ORGANISATION = "organisation";

/** The id of member n of the account. */
export function memberId(n: number): string {
  return `member-${n}`;
}

/** The ids that the requests of a run name, in an order that depends on the seed only. */
export function namesOf(users: Exclude<Spread, "cold">, seed: number): string[] {
  if (users === "hot") return Array.from(HOT_USERS, userId);
  if (users === "spread") return Array.from(shuffled(USERS, seed), userId);
  return Array.from(shuffled(MEMBERS, seed), users === "members" ? memberId : userId);
}

/** How many users there are with nothing in memory, and what their ids are. */
export const COLD_USERS = 1_000_000;

/**
 * What is called: a reserve, a reserve and the commit of it, or a read of a user that is in memory. The last two pairs
 * are a model's work under a budget in cents, with amounts that the caller worked out and with what the model's server
 * reported: the same counters move by the same amounts.
 */
export type Calls = "reserve" | Pair | "can-use" | "usage" | "track" | "batch";
type Pair = "pair" | "pair of amounts" | "pair with usage";

/** What the commit of a pair says beside the reservation's id. */
const COMMITS: Readonly<Record<Pair, Record<string, unknown>>> = {
  "pair": {},
  "pair of amounts": { actual: { tokens: 1120, cents: 0.0222 } },
  "pair with usage": { usage: { inputTokens: 1000, outputTokens: 120 } },
};

/** What an answer of 200 holds where the call did what it was asked to; null where nothing is looked for. */
export function successOf(calls: Calls): string | null {
  switch (calls) {
    case "usage":
      return null;
    case "track":
    case "batch":
      return '"matchStatus":"matched"';
    default:
      return '"allowed":true';
  }
}

/** Whether a call is a reserve that a commit follows. */
export function isPair(calls: Calls): calls is Pair {
  return Object.hasOwn(COMMITS, calls);
}

/** The body of a commit; the id is its last member. */
export function commitOf(calls: Calls, reservationId: string): string {
  return JSON.stringify({ ...isPair(calls) ? COMMITS[calls] : {}, reservationId });
}

/** One run of the generator. */
export interface LoadPlan {
  port: number;
  connections: number;
  warmupMs: number;
  measureMs: number;
  users: Spread;
  paidBy: PaidBy;
  calls: Calls;
  /** Requests a second over all connections; null for as many as are answered. */
  rate: number | null;
  /** The first cold user to call. */
  firstCold: number;
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
  p999Ms: number;
  maxMs: number;
}

/** What a run reports. Failures are kept apart and never count as requests. */
export interface LoadReport {
  seconds: number;
  /** The call that was asked for; of a pair, its reserve. */
  first: CallReport;
  commit: CallReport | null;
  all: CallReport;
  /** Calls that were answered well in each second of the measured time; none where the library made the load. */
  bySecond: number[];
  /** Calls that were answered well from the start of the process to its end, measured or not. */
  answered: { first: number; commit: number };
  /** How long the generator itself stood still at most, as where the machine does; null where it does not look. */
  longestPauseMs: number | null;
  /** The first cold user that was not called. */
  nextCold: number;
  /** Answers other than 200, by status, and reserves that were not allowed, as "refused". */
  failures: Record<string, number>;
  /** The first failed answer's body, to say why. */
  firstFailure: string | null;
}

/** The name of cold user n; all have one length. */
export function coldUserId(n: number): string {
  return `cold-${String(n).padStart(7, "0")}`;
}

/** A call of a model that has a price. */
const CHAT = { event: "chat.reply", metadata: { model: "mini" }, inputTokens: 1000 };

/** Events in a batch, each of another user. */
export const BATCH_EVENTS = 100;

/** The request of a call for a user: method, path, and a body where it has one. */
export function requestOf(calls: Calls, paidBy: PaidBy, userId: string): [string, string, string | null] {
  const event = EVENTS[paidBy];
  switch (calls) {
    case "usage":
      return ["GET", `/api/v1/usage?userId=${userId}`, null];
    case "can-use":
      return ["POST", "/api/v1/can-use", JSON.stringify({ userId, event, count: 1 })];
    case "track":
      return ["POST", "/api/v1/track", JSON.stringify({ userId, event, count: 1 })];
    case "batch": {
      const first = Number(userId.replace(/^user-/, ""));
      const events = Array.from({ length: BATCH_EVENTS }, (_, place) => {
        return { userId: `user-${(first + place) % USERS}`, event, count: 1 };
      });
      return ["POST", "/api/v1/track/batch", JSON.stringify({ events })];
    }
    case "reserve":
    case "pair":
      return ["POST", "/api/v1/reserve", JSON.stringify({ userId, event, count: 1 })];
    case "pair of amounts":
      return ["POST", "/api/v1/reserve", JSON.stringify({ userId, ...CHAT })];
    case "pair with usage":
      return ["POST", "/api/v1/reserve", JSON.stringify({ userId, ...CHAT, maxOutputTokens: 500 })];
  }
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
