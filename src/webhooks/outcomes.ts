// Writing the outcomes of attempts. Attempts that end during a transaction share the next one of their cell. If the cell
// has another owner by now, the write is refused, and that owner sends the message again.

import type { Millis } from "../domain/values/period.ts";
import { SENDER_LIMITS } from "../process/webhook_limits.ts";
import type { InCell } from "../storage/nodes/cell_store.ts";
import {
  type AttemptOutcome,
  saveHealth,
  saveOutcomes,
  type WebhookHealth,
} from "../storage/stores/message_store.ts";

/** The outcome of an attempt, its endpoint, and its real time. */
interface Ended {
  readonly webhookId: string;
  readonly outcome: AttemptOutcome;
  readonly isDelivered: boolean;
  readonly at: Millis;
}

interface Waiting {
  readonly ended: Ended;
  readonly resolve: (failingSince: Millis | null) => void;
  readonly reject: (reason: unknown) => void;
}

/** Writes outcomes. */
export class Outcomes {
  readonly #inCell: InCell;
  readonly #waiting = new Map<number, Waiting[]>();
  #isWriting = false;

  constructor(inCell: InCell) {
    this.#inCell = inCell;
  }

  /** Writes an outcome; returns since when its endpoint has only failed. */
  save(cell: number, ended: Ended): Promise<Millis | null> {
    return new Promise((resolve, reject) => {
      const waiting = this.#waiting.get(cell) ?? [];
      waiting.push({ ended, resolve, reject });
      this.#waiting.set(cell, waiting);
      void this.#write();
    });
  }

  async #write(): Promise<void> {
    if (this.#isWriting) return;
    this.#isWriting = true;
    for (const [cell, waiting] of this.#waiting) {
      const some = waiting.splice(0, SENDER_LIMITS.outcomesMax);
      this.#waiting.delete(cell);
      if (waiting.length > 0) this.#waiting.set(cell, waiting);
      try {
        const failing = await this.#save(cell, some.map(({ ended }) => ended));
        for (const { ended, resolve } of some) resolve(failing.get(ended.webhookId) ?? null);
      } catch (error) {
        for (const { reject } of some) reject(error);
      }
    }
    this.#isWriting = false;
  }

  async #save(cell: number, ended: readonly Ended[]): Promise<Map<string, Millis | null>> {
    const rows = await this.#inCell(cell, async (session) => {
      await saveOutcomes(session, ended.map(({ outcome }) => outcome));
      return await saveHealth(session, healthOf(ended));
    });
    return new Map(rows.map(({ webhookId, failingSince }) => [webhookId, failingSince]));
  }
}

/** The health of endpoints after some attempts, in the order in which these ended. */
function healthOf(ended: readonly Ended[]): WebhookHealth[] {
  const health = new Map<string, WebhookHealth>();
  for (const { webhookId, isDelivered, at } of ended) {
    const { succeededAt = null, failedAt = null } = health.get(webhookId) ?? {};
    health.set(
      webhookId,
      isDelivered
        ? { webhookId, succeededAt: at, failedAt: null }
        : { webhookId, succeededAt, failedAt: failedAt ?? at },
    );
  }
  return [...health.values()];
}
