// The input of the checkers: every turn whose changes became durable, in order, and the tables as if each turn had been
// written at once. A checker throws for a fault.

import { encodeChanges, FIRST_TABLE, TABLES } from "../../src/storage/rows/tables.ts";
import type { User } from "../../src/domain/state/user.ts";
import { SimTables } from "./database/tables.ts";
import type { Server } from "./database/server.ts";
import type { Call } from "./history.ts";
import type { Receipt, Receiver } from "./receiver.ts";
import type { NotedBatch, Turn } from "./recorder.ts";
import type { Tenant } from "./tenants.ts";
import { isGone, isUnmodelled } from "./traffic.ts";

/** What was found, by whom. */
export interface Violation {
  readonly checker: string;
  readonly message: string;
}

/** A run on one database, as checkers see it. */
export interface Scene {
  readonly tenants: readonly Tenant[];
  readonly server: Server;
  /** The tables if every durable batch had been written at once. */
  readonly expected: SimTables;
  /** About its workspaces. */
  readonly calls: readonly Call[];
  readonly receiver: Receiver;
  /** The calendar when the last sweep of all began. */
  sweptAtMs: number;
  /** Whether a number is of a user who gets erased. */
  isGone(userKey: number): boolean;
  /** Whether a number is of a user that the model is not asked about. */
  isUnmodelled(userKey: number): boolean;
  /** The tenant that a user belongs to. */
  tenantOf(userKey: number): Tenant | undefined;
}

/** A checker; both are optional. */
export interface Checker {
  readonly name: string;
  /** Sees each turn as it becomes durable. */
  onTurn?(turn: Turn, scene: Scene): void;
  /** Called with each message of a webhook as it arrives at its endpoint. */
  onReceipt?(receipt: Receipt, scene: Scene): void;
  /** Looks at the end of a run. */
  atEnd?(scene: Scene): void;
}

const TOTALS: ReadonlySet<string> = new Set(["operations", "credit_issues", "ai_spend", "gateway_spend"]);

/** Shows a run to checkers and keeps the first thing that one of them finds. */
export class Watch {
  violation: Violation | null = null;
  readonly scene: Scene;
  readonly #checkers: readonly Checker[];
  readonly #ids = new Map<number, string>();
  readonly #tenants = new Map<number, Tenant>();

  constructor(
    checkers: readonly Checker[],
    tenants: readonly Tenant[],
    server: Server,
    calls: readonly Call[],
    receiver: Receiver,
  ) {
    this.#checkers = checkers;
    const expected = new SimTables();
    this.scene = {
      tenants,
      server,
      expected,
      get calls() {
        return calls.filter(({ tenant }) => tenants.includes(tenant));
      },
      receiver,
      sweptAtMs: 0,
      isGone: (key) => isGone(this.#ids.get(key)),
      isUnmodelled: (key) => isUnmodelled(this.#ids.get(key)),
      tenantOf: (key) => this.#tenants.get(key),
    };
    const urls = tenants.flatMap(({ webhooks }) => webhooks.map(({ url }) => url));
    receiver.listeners.push((receipt) => {
      for (const checker of urls.includes(receipt.url) ? checkers : []) {
        this.try(checker.name, () => checker.onReceipt?.(receipt, this.scene));
      }
    });
    server.tables.onForgotten = (keys) => expected.forget(keys);
  }

  /** Takes a batch that is in the journal now. */
  take(batch: NotedBatch, payload: string): void {
    const { expected } = this.scene;
    for (const turn of batch.turns) {
      this.try("tables", () => expected.write(encodeChanges(turn.changes)));
      for (const { table, row } of turn.changes) {
        if (table === "users") this.#learn(row);
      }
      for (const checker of this.#checkers) this.try(checker.name, () => checker.onTurn?.(turn, this.scene));
    }
    // Totals leave with a batch and with no turn.
    const totals = payload.split("\n").filter((line) =>
      TOTALS.has(TABLES[line.charCodeAt(0) - FIRST_TABLE]?.name ?? "")
    );
    if (totals.length > 0) this.try("tables", () => expected.write(totals.join("\n")));
  }

  #learn({ key, id, realm }: User): void {
    this.#ids.set(key, id);
    const tenant = this.scene.tenants.find((each) => each.realm === realm);
    if (tenant !== undefined) this.#tenants.set(key, tenant);
  }

  /** Asks every checker at the end. */
  end(): void {
    for (const checker of this.#checkers) this.try(checker.name, () => checker.atEnd?.(this.scene));
  }

  /** Notes something that was found. */
  report(checker: string, message: string): void {
    this.violation ??= { checker, message };
  }

  /** Notes what a look throws. */
  try(checker: string, look: () => void): void {
    try {
      look();
    } catch (error) {
      this.report(checker, error instanceof Error ? error.message : String(error));
    }
  }
}
