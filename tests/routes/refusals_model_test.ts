// Counts of refused calls under a random workload with merges: what the answers said, added up apart from the service, is
// what GET /v1/refusals says. The model checks every other answer on the way.

import assert from "node:assert/strict";
import { catalogs } from "../model/catalogs.ts";
import type { Input, ModelReply, ModelRequest } from "../model/document.ts";
import { drive } from "../model/drive.ts";
import { sendOverWire } from "../model/wire.ts";
import type { TestApp } from "../support/test_service.ts";
import { dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();
const HOUR = 3_600_000;
const KEPT = 90 * 24 * HOUR;
const STEPS = 300;

interface Row {
  readonly userId: string;
  readonly event: string;
  readonly reasons: readonly string[];
  readonly count: number;
  readonly firstAt: string;
  readonly lastAt: string;
}

/** What a caller who wrote everything down knows of refused calls. */
class Notes {
  /** Each refused call, with the user that it named. */
  readonly #calls: { userId: string; event: string; reason: string; at: number }[] = [];
  readonly #mergedInto = new Map<string, string>();

  take({ op, input }: ModelRequest, { status, code, data = {} }: ModelReply, at: number): void {
    const isRefused = op === "track" ? status === 429 : op === "reserve" && data["allowed"] === false;
    if (isRefused) {
      const reason = op === "track" ? String(code) : (data["reasons"] as string[]).join();
      this.#calls.push({ userId: String(input["userId"]), event: String(input["event"]), reason, at });
    }
    if (input["dryRun"] === true || status !== 200) return;
    if (op === "alias") this.#merge(input);
    for (const result of op === "aliasBatch" ? data["results"] as Input[] : []) {
      if (result["ok"] === true) this.#merge(result);
    }
  }

  #merge({ from, to }: Input): void {
    const [alias, canonical] = [this.canonical(String(from)), this.canonical(String(to))];
    if (alias !== canonical) this.#mergedInto.set(alias, canonical);
  }

  canonical(id: string): string {
    const into = this.#mergedInto.get(id);
    return into === undefined ? id : this.canonical(into);
  }

  get merges(): number {
    return this.#mergedInto.size;
  }

  /** The rows that should be there, as texts in their order by text. */
  rows(now: number): string[] {
    const alike = Map.groupBy(
      this.#calls,
      ({ userId, event, reason, at }) =>
        `${this.canonical(userId)} ${event} ${reason} ${Math.floor(at / HOUR)}`,
    );
    return [...alike.values()].map((calls) => {
      const { userId, event, reason } = calls[0] as { userId: string; event: string; reason: string };
      const times = calls.map(({ at }) => at);
      const [first, last] = [Math.min(...times), Math.max(...times)];
      return { first, last, row: [this.canonical(userId), event, reason, calls.length] };
    }).filter(({ last }) => last > now - KEPT).map(({ first, last, row }) => textOf(row, first, last)).sort();
  }
}

function textOf(row: readonly unknown[], first: number, last: number): string {
  return [...row, new Date(first).toISOString(), new Date(last).toISOString()].join(" ");
}

async function pagesOf(app: TestApp, query = ""): Promise<Row[]> {
  const rows: Row[] = [];
  while (true) {
    const page = `/refusals?limit=100&offset=${rows.length}${query}`;
    const { refusals } = await dataOf(app.call("GET", page));
    rows.push(...refusals);
    if (refusals.length < 100) return rows;
  }
}

function shown({ userId, event, reasons, count, firstAt, lastAt }: Row): string {
  return textOf([userId, event, reasons.join(), count], Date.parse(firstAt), Date.parse(lastAt));
}

for (const [name, catalog] of Object.entries({ tiny: catalogs.tiny, ladder: catalogs.ladder })) {
  Deno.test(`what a caller notes of refused calls is what the service counts, over merges and crashes: ${name}`, async () => {
    const app = await service.newApp(catalog);
    const notes = new Notes();
    let steps = 0;
    const compare = async () => {
      const rows = await pagesOf(app);
      assert.deepEqual(rows.map(shown).sort(), notes.rows(service.clock.now()));
      const times = rows.map(({ lastAt }) => lastAt);
      assert.deepEqual(times, times.toSorted().reverse());
      for (const id of new Set(rows.map(({ userId }) => userId))) {
        const own = rows.filter(({ userId }) => userId === id).map(shown);
        assert.deepEqual((await pagesOf(app, `&userId=${encodeURIComponent(id)}`)).map(shown), own);
      }
    };
    await drive({
      catalog,
      seed: 7,
      steps: STEPS,
      merges: true,
      startMs: service.clock.now(),
      send: async (request, nowMs) => {
        service.clock.set(nowMs);
        steps += 1;
        if (steps % 100 === 0) await compare();
        // What was read is written, and outlasts a crash.
        if (steps % 200 === 0) await service.restart();
        const reply = await sendOverWire((method, path, body) => app.call(method, path, body), request);
        notes.take(request, reply, nowMs);
        return reply;
      },
    });
    await compare();
    assert.ok(notes.merges > 3 && notes.rows(service.clock.now()).length > 10);
  });
}
