// The knowledge of a crash test's clients: every call with its outcome. It comes from the answers alone; the auditor
// compares it with the service.

import type { WireCall } from "./wire.ts";

/**
 * `acked`: answered 200. `refused`: answered that nothing was done, or never sent. `unknown`: no answer, or 503, so
 * that it may or may not have been done.
 */
export type Fate = "open" | "acked" | "refused" | "unknown";

/** A reserve or a track. Its tag is in the metadata of the row that it makes. */
export interface Call {
  readonly tag: string;
  readonly kind: "reserve" | "track";
  readonly userId: string;
  readonly count: number;
  readonly idempotencyKey: string | null;
  fate: Fate;
  /** The reservation or event that an answer named; a blocked track names one too. */
  id: string | null;
  isBlocked: boolean;
  /** When it was sent first, in milliseconds of the clients. */
  readonly sentAt: number;
  /** When its answer came; null without one. */
  answeredAt: number | null;
}

/** A commit or release of a hold. */
export interface Settlement {
  readonly kind: "commit" | "release";
  readonly extra: number;
  readonly idempotencyKey: string | null;
  readonly sentAt: number;
  fate: Fate;
  eventId: string | null;
}

/** A hold in an answer to a client. */
export interface Hold {
  readonly id: string;
  readonly call: Call;
  readonly settlements: Settlement[];
}

/** A keyed call with the first answer that came to it. */
export interface FirstAnswer {
  readonly request: WireCall;
  readonly status: number;
  readonly body: string;
}

/** Everything that the clients know. */
export class Record {
  readonly calls = new Map<string, Call>();
  readonly holds = new Map<string, Hold>();
  /** Answers that contradict what was known, found by the clients themselves. */
  readonly faults: string[] = [];
  /** Ids of acknowledged events, in the order of their answers. */
  readonly eventIds: string[] = [];
  /** Captures by the names of their events, which are unique. */
  readonly captures = new Map<string, Extract<Fate, "acked" | "unknown">>();
  /** By idempotency key, in the order of their answers. */
  readonly firstAnswers = new Map<string, FirstAnswer>();
  /** The largest count of the witness that an answer showed. */
  witnessed = 0;
  /** How many answers came, by status. */
  readonly answers = new Map<number | string, number>();

  count(outcome: number | string): void {
    this.answers.set(outcome, (this.answers.get(outcome) ?? 0) + 1);
  }

  fault(text: string): void {
    if (this.faults.length < 50) this.faults.push(text);
  }

  summary(): string {
    const fates = Map.groupBy(this.calls.values(), ({ fate }) => fate);
    const counts = [...fates].map(([fate, calls]) => `${calls.length} ${fate}`);
    return `${counts.join(", ")}; answers ${JSON.stringify(Object.fromEntries(this.answers))}`;
  }
}
