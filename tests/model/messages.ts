// Messages of webhooks. The model expects one message for each event and each listener that wants its type then. It
// compares them with the recorded ones, per listener and user, in the order of the turns. Within one turn only this
// order is fixed: thresholds ascend, low comes before depleted, a merge before its effects. Everything that falls due
// at one moment is one turn.

import { compare } from "./compare.ts";
import type { WireData } from "./document.ts";
import type { Named } from "./state.ts";

/** A webhook that takes messages, and the types it wants: whole ones, prefixes that end in `.*`, or `*`. */
export interface Listener {
  webhookId: string;
  events: string[];
}

/** A message as a system recorded it; the times as on the wire. */
export interface Recorded {
  webhookId: string;
  type: string;
  timestamp: string;
  data: WireData;
}

/** Something that happened, for one listener. */
interface Told {
  turn: number;
  type: string;
  at: number;
  data: WireData;
  /** Members of the data that are ids of rows, whose ids may still be unknown. */
  ids: Record<string, Named>;
}

/** The expected messages that were not recorded yet, by listener and user. */
export class Messages {
  listeners: Listener[] = [];
  readonly #queues = new Map<string, Told[]>();
  #turn = 0;

  /** Starts a turn: messages from now on come after all earlier ones. */
  nextTurn(): void {
    this.#turn += 1;
  }

  /** Expects a message about a user; returns how many listeners want it. */
  tell(userId: string, told: Omit<Told, "turn">): number {
    const wanting = this.listeners.filter(({ events }) => events.some((each) => covers(each, told.type)));
    for (const { webhookId } of wanting) {
      this.#queue(webhookId, userId).push({ ...told, turn: this.#turn });
    }
    return wanting.length;
  }

  /** Ticks off what a system recorded, in the order of its ids; answers what is wrong with it, in words. */
  take(recorded: Recorded[], mode: "live" | "test"): string[] {
    return recorded.flatMap((message) => {
      const faults = this.#takeOne(message, mode);
      return faults.map((fault) => `message ${message.type} for ${message.webhookId}: ${fault}`);
    });
  }

  /** The expected messages about a user that were not recorded yet, in order. */
  waiting(webhookId: string, userId: string): readonly Told[] {
    return this.#queue(webhookId, userId);
  }

  /** The expected messages that were never recorded, in words. */
  missing(): string[] {
    return [...this.#queues].flatMap(([key, queue]) =>
      queue.map((told) => `never recorded for ${key}: ${JSON.stringify(bodyOf(told))}`)
    );
  }

  #takeOne({ webhookId, type, timestamp, data }: Recorded, mode: "live" | "test"): string[] {
    const { appId, mode: itsMode, ...rest } = data;
    if (typeof appId !== "string" || itsMode !== mode) return [`is of ${appId} in mode ${itsMode}`];
    const owner = String(type === "user.merged" ? rest["to"] : rest["userId"]);
    const queue = this.#queue(webhookId, owner);
    const [head] = queue;
    if (!head) return [`no message is expected about ${owner}, but ${JSON.stringify(rest)}`];
    const turn = queue.filter((each) => each.turn === head.turn);
    const seen = { type, timestamp, ...rest };
    const differences = turn.map((told) => differencesOf(told, seen));
    const found = turn.find((_, place) => differences[place]?.length === 0);
    if (!found) {
      const likeliest = differences.toSorted((a, b) => a.length - b.length)[0]!;
      return [`${turn.length} expected about ${owner}, the likeliest differs`, ...likeliest];
    }
    const earlier = turn.slice(0, turn.indexOf(found)).find((told) => mustPrecede(told, found));
    if (earlier) return [`comes before ${earlier.type} ${JSON.stringify(earlier.data)}`];
    queue.splice(queue.indexOf(found), 1);
    // Messages about the ending user come before the merge.
    const left = type === "user.merged" ? this.#queue(webhookId, String(rest["from"])) : [];
    return left.map((told) => `comes before ${told.type} of ${rest["from"]}`);
  }

  #queue(webhookId: string, userId: string): Told[] {
    const key = `${webhookId} ${userId}`;
    const queue = this.#queues.get(key) ?? [];
    this.#queues.set(key, queue);
    return queue;
  }
}

function covers(pattern: string, type: string): boolean {
  if (pattern.endsWith(".*")) return type.split(".")[0] === pattern.slice(0, -2);
  return pattern === "*" || pattern === type;
}

function differencesOf(told: Told, seen: WireData): string[] {
  return compare({ status: 200, data: bodyOf(told) }, { status: 200, data: seen });
}

/** A message as the wire has it, without app and mode and with its data beside its type. */
export function bodyOf({ type, at, data, ids }: Told): WireData {
  const named = Object.fromEntries(Object.entries(ids).map(([name, row]) => [name, row.id]));
  return { type, timestamp: new Date(at).toISOString(), ...data, ...named };
}

/** Whether the first of two messages of one turn must come before the second. */
function mustPrecede(first: Told, second: Told): boolean {
  const isSame = (name: string) => first.data[name] === second.data[name];
  if (first.type === "user.merged") return true;
  if (first.type === "usage.threshold_reached" && second.type === first.type) {
    return isSame("groupId") &&
      JSON.stringify(first.data["period"]) === JSON.stringify(second.data["period"]);
  }
  return first.type === "credits.low" && second.type === "credits.depleted" &&
    first.ids["balanceId"] === second.ids["balanceId"];
}
