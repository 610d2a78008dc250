// The load generator, a process of its own: reads a LoadPlan from stdin, keeps one request in flight on each
// keep-alive connection (a closed loop), and prints a LoadReport. Everything it sends is built beforehand and answers
// are read as bytes, because it shares the cores with what it measures; the README has its cost beside autocannon's.
import { AnswerReader, bytes, find } from "./http_reader.ts";
import { callReport, Histogram } from "./histogram.ts";
import {
  COLD_USERS,
  coldUserId,
  commitOf,
  isPair,
  type LoadPlan,
  type LoadReport,
  requestOf,
  shuffled,
  successOf,
  userId,
  USERS,
} from "./load_plan.ts";

const RESERVATION = bytes('"reservationId":"');
const QUOTE = bytes('"');
const CONNECTION_FAULTS_MAX = 100;

function request(
  plan: LoadPlan,
  method: string,
  path: string,
  body: string | null,
): Uint8Array<ArrayBuffer> {
  const head = `${method} ${path} HTTP/1.1\r\nhost: 127.0.0.1:${plan.port}\r\n` +
    `authorization: ${plan.authorization}\r\n`;
  if (body === null) return bytes(`${head}\r\n`);
  return bytes(
    `${head}content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
}

/** The requests that all connections go round; of cold users one that each connection writes its users into. */
function requestsOf(plan: LoadPlan): Uint8Array<ArrayBuffer>[] {
  const { calls, paidBy, users } = plan;
  const names = users === "cold"
    ? [coldUserId(0)]
    : Array.from(users === "hot" ? Uint32Array.of(0) : shuffled(USERS, plan.seed), userId);
  return names.map((name) => request(plan, ...requestOf(calls, paidBy, name)));
}

/** One run: the state that its connections share. */
class Run {
  readonly first = new Histogram();
  readonly commit = new Histogram();
  readonly failures: Record<string, number> = {};
  firstFailure: string | null = null;
  measuring = false;
  stopped = false;
  readonly #plan: LoadPlan;
  readonly #requests: Uint8Array<ArrayBuffer>[];
  #next = 0;
  nextCold: number;
  #faults = 0;

  constructor(plan: LoadPlan) {
    this.#plan = plan;
    this.#requests = requestsOf(plan);
    this.nextCold = plan.firstCold;
  }

  /** Drives one connection until the run stops; opens a new one when the server closed it. */
  async drive(): Promise<void> {
    while (!this.stopped) {
      try {
        using connection = await Deno.connect({ hostname: "127.0.0.1", port: this.#plan.port });
        connection.setNoDelay(true);
        await this.#loop(connection);
      } catch (error) {
        if (this.stopped) return;
        this.#fail("connection", String(error));
        if (++this.#faults > CONNECTION_FAULTS_MAX) throw error;
        await sleep(20);
      }
    }
  }

  async #loop(connection: Deno.TcpConn): Promise<void> {
    const answer = new AnswerReader(connection);
    const commit = new CommitRequest(this.#plan);
    const cold = this.#plan.users === "cold" ? new ColdRequest(this.#requests[0]!) : null;
    const pace = new Pace(this.#plan);
    const success = successOf(this.#plan.calls);
    const wanted = success === null ? null : bytes(success);
    while (!this.stopped) {
      await pace.wait();
      const body = cold === null ? this.#turn() : cold.of(this.#coldTurn());
      await this.#call(connection, answer, body, this.first);
      if (answer.status !== 200) {
        await sleep(1);
      } else if (wanted !== null && find(answer.buffer, wanted, answer.bodyStart, answer.bodyEnd) < 0) {
        this.#fail("refused", answer.bodyText());
      } else if (isPair(this.#plan.calls)) {
        await this.#call(connection, answer, commit.settling(answer), this.commit);
      }
    }
  }

  #turn(): Uint8Array<ArrayBuffer> {
    const body = this.#requests[this.#next]!;
    this.#next = this.#next + 1 === this.#requests.length ? 0 : this.#next + 1;
    return body;
  }

  #coldTurn(): number {
    if (this.nextCold >= COLD_USERS) throw new Error("there are no more cold users");
    return this.nextCold++;
  }

  async #call(
    connection: Deno.TcpConn,
    answer: AnswerReader,
    body: Uint8Array<ArrayBuffer>,
    histogram: Histogram,
  ): Promise<void> {
    const start = performance.now();
    let written = await connection.write(body);
    while (written < body.length) written += await connection.write(body.subarray(written));
    await answer.read();
    if (answer.status !== 200) this.#fail(String(answer.status), answer.bodyText());
    else if (this.measuring) histogram.record((performance.now() - start) * 1000);
  }

  #fail(kind: string, detail: string): void {
    this.failures[kind] = (this.failures[kind] ?? 0) + 1;
    this.firstFailure ??= `${kind}: ${detail.slice(0, 300)}`;
  }
}

/** When a connection may send: at once, or at its part of a rate. */
class Pace {
  readonly #intervalMs: number;
  #nextAt: number;

  constructor({ rate, connections }: LoadPlan) {
    this.#intervalMs = rate === null ? 0 : 1000 * connections / rate;
    this.#nextAt = performance.now() + Math.random() * this.#intervalMs;
  }

  async wait(): Promise<void> {
    if (this.#intervalMs === 0) return;
    const early = this.#nextAt - performance.now();
    // A late request does not make the next ones come in a burst.
    this.#nextAt = Math.max(this.#nextAt, performance.now() - this.#intervalMs) + this.#intervalMs;
    if (early > 0) await sleep(early);
  }
}

/** A request whose user is written into it. */
class ColdRequest {
  readonly #request: Uint8Array<ArrayBuffer>;
  readonly #at: number;

  constructor(request: Uint8Array<ArrayBuffer>) {
    this.#request = request.slice();
    this.#at = find(request, bytes(coldUserId(0)), 0, request.length);
  }

  of(user: number): Uint8Array<ArrayBuffer> {
    this.#request.set(bytes(coldUserId(user)), this.#at);
    return this.#request;
  }
}

/** A commit request whose reservation id is copied in from the answer to the reserve. */
class CommitRequest {
  readonly #plan: LoadPlan;
  #request = new Uint8Array(0);
  #idLength = -1;
  #idAt = 0;

  constructor(plan: LoadPlan) {
    this.#plan = plan;
  }

  settling(answer: AnswerReader): Uint8Array<ArrayBuffer> {
    const found = find(answer.buffer, RESERVATION, answer.bodyStart, answer.bodyEnd);
    if (found < 0) throw new Error("an allowed reserve came without a reservationId");
    const start = found + RESERVATION.length;
    const length = find(answer.buffer, QUOTE, start, answer.bodyEnd) - start;
    if (length !== this.#idLength) {
      const body = commitOf(this.#plan.calls, "x".repeat(length));
      this.#request = request(this.#plan, "POST", "/api/v1/commit", body);
      this.#idLength = length;
      this.#idAt = this.#request.length - '"}'.length - length;
    }
    this.#request.set(answer.buffer.subarray(start, start + length), this.#idAt);
    return this.#request;
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Loads one server as planned. */
async function load(plan: LoadPlan): Promise<LoadReport> {
  const run = new Run(plan);
  const connections = Promise.all(Array.from({ length: plan.connections }, () => run.drive()));
  // A connection that gives up ends the run with its error; the timer alone would hide it.
  await Promise.race([connections, sleep(plan.warmupMs)]);
  run.measuring = true;
  const start = performance.now();
  await Promise.race([connections, sleep(plan.measureMs)]);
  run.measuring = false;
  const seconds = (performance.now() - start) / 1000;
  run.stopped = true;
  await Promise.race([connections, sleep(5000)]);
  const all = new Histogram();
  all.add(run.first);
  all.add(run.commit);
  return {
    seconds,
    first: callReport(run.first, seconds),
    nextCold: run.nextCold,
    commit: isPair(plan.calls) ? callReport(run.commit, seconds) : null,
    all: callReport(all, seconds),
    failures: run.failures,
    firstFailure: run.firstFailure,
  };
}

if (import.meta.main) {
  const plan: LoadPlan = JSON.parse(await new Response(Deno.stdin.readable).text());
  const report = await load(plan);
  console.log(JSON.stringify(report));
  // Connections that still wait for an answer must not keep the process.
  Deno.exit(0);
}
