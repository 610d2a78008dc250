// Wrong tokens of console and admin API in the audit log: a row for each address and minute, with their number. A process
// writes at most so many rows a minute; the wrong tokens of further addresses are counted in one row.

import type { Millis } from "../domain/values/period.ts";
import { AUDIT_LIMITS } from "../process/limits.ts";
import { log, messageOf } from "../process/log.ts";
import { addFailedSignIns, type FailedSignIn } from "../storage/stores/audit_store.ts";
import { type AuditWorld, NO_CELLS } from "./audit.ts";

const MINUTE_MS = 60_000;
/** The address of a row that counts several. */
const OTHERS = "others";

/** Counts the wrong tokens of a process. */
export class FailedSignIns {
  #minute: Millis = 0;
  readonly #addresses = new Set<string>();
  /** Counts that were not written yet, by minute and address. */
  readonly #unwritten = new Map<string, FailedSignIn>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Counts a wrong token and writes the count. */
  async add(world: AuditWorld, address: string, via: FailedSignIn["via"]): Promise<void> {
    this.#count(world, address, via);
    await this.#write(world);
  }

  /** Counts a wrong token, and writes the count with others a little later: a flood must not become as many writes. */
  addLater(world: AuditWorld, address: string, via: FailedSignIn["via"]): void {
    this.#count(world, address, via);
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#write(world).catch((error) =>
        log("warn", "Failed sign-ins are missing in the audit log", { error: messageOf(error) })
      );
    }, AUDIT_LIMITS.failedWriteMs);
    Deno.unrefTimer(this.#timer);
  }

  #count({ clock, ids }: AuditWorld, from: string, via: FailedSignIn["via"]): void {
    const minute = Math.floor(clock.now() / MINUTE_MS) * MINUTE_MS;
    if (minute !== this.#minute) {
      this.#minute = minute;
      this.#addresses.clear();
    }
    const hasRoom = this.#addresses.size < AUDIT_LIMITS.failedRowsMax - 1;
    const address = hasRoom || this.#addresses.has(from) ? from : OTHERS;
    if (address === from) this.#addresses.add(from);
    const key = `${minute} ${address}`;
    const { id = ids.next("audit"), count = 0 } = this.#unwritten.get(key) ?? {};
    this.#unwritten.set(key, { id, minute, address, via, count: count + 1 });
  }

  async #write({ inCell }: AuditWorld): Promise<void> {
    const rows = [...this.#unwritten.values()];
    this.#unwritten.clear();
    if (rows.length > 0) await inCell(NO_CELLS, (session) => addFailedSignIns(session, rows));
  }
}
