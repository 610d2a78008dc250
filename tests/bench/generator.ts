// The load generator, a process of its own: reads a LoadPlan from stdin, keeps one request in flight on each
// keep-alive connection (a closed loop), and prints a LoadReport. Everything it sends is built beforehand and answers
// are read as bytes, because it shares the cores with what it measures; the README has its cost beside autocannon's.
import { AnswerReader, bytes, find } from "./http_reader.ts";
import { callReport, Histogram } from "./histogram.ts";
import {
  COLD_USERS,
  coldUserId,
  commitOf,
  HOT_CALLS,
  isPair,
  type LoadPlan,
  type LoadReport,
  namesOf,
  requestOf,
  successOf,
} from "./load_plan.ts";
import { Pace } from "./pace.ts";

const RESERVATION = bytes('"reservationId":"');
const QUOTE = bytes('"');
const CONNECTION_FAULTS_MAX = 100;
const PULSE_MS = 5;

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

/** The requests that all connections repeat; for cold users a single one, into which each connection writes its users. */
function requestsOf(plan: LoadPlan): Uint8Array<ArrayBuffer>[] {
  const { calls, paidBy, users } = plan;
  const names = users === "cold" ? [coldUserId(0)] : namesOf(users, plan.seed);
  return names.map((name) => request(plan, ...requestOf(calls, paidBy, name)));
}

/** One run: the state that its connections share. */
class Run {
  readonly first = new Histogram();
  readonly commit = new Histogram();
  readonly failures: Record<string, number> = {};
  firstFailure: string | null = null;
  /** Calls that were answered well in each second of the measured time. */
  readonly bySecond: number[] = [];
  readonly answered = { first: 0, commit: 0 };
  /** The measured time, by `performance.now()`: calls that were due in it are in the histograms. */
  from = Infinity;
  until = Infinity;
  stopped = false;
  readonly #plan: LoadPlan;
  readonly #requests: Uint8Array<ArrayBuffer>[];
  #next = 0;
  #onHot = 0;
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
    const pace = this.#plan.rate === null ? null : Pace.of(this.#plan.rate, this.#plan.connections);
    const success = successOf(this.#plan.calls);
    const wanted = success === null ? null : bytes(success);
    while (!this.stopped || pace !== null && pace.nextAt < this.until) {
      const due = pace === null ? performance.now() : await pace.wait();
      const body = cold === null ? this.#turn() : cold.of(this.#coldTurn());
      await this.#call(connection, answer, body, "first", due);
      if (answer.status !== 200) {
        await sleep(1);
      } else if (wanted !== null && find(answer.buffer, wanted, answer.bodyStart, answer.bodyEnd) < 0) {
        this.#fail("refused", answer.bodyText());
      } else if (isPair(this.#plan.calls)) {
        await this.#call(connection, answer, commit.settling(answer), "commit", performance.now());
      }
    }
  }

  #turn(): Uint8Array<ArrayBuffer> {
    const body = this.#requests[this.#next]!;
    if (this.#plan.users === "hot" && ++this.#onHot % HOT_CALLS !== 0) return body;
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
    kind: "first" | "commit",
    due: number,
  ): Promise<void> {
    let written = await connection.write(body);
    while (written < body.length) written += await connection.write(body.subarray(written));
    await answer.read();
    if (answer.status !== 200) return this.#fail(String(answer.status), answer.bodyText());
    this.answered[kind] += 1;
    const now = performance.now();
    if (due >= this.from && due < this.until) this[kind].record((now - due) * 1000);
    if (now < this.from || now >= this.until) return;
    const second = Math.floor((now - this.from) / 1000);
    this.bySecond[second] = (this.bySecond[second] ?? 0) + 1;
  }

  #fail(kind: string, detail: string): void {
    this.failures[kind] = (this.failures[kind] ?? 0) + 1;
    this.firstFailure ??= `${kind}: ${detail.slice(0, 300)}`;
  }
}

/** A request with a place into which a user is written. */
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

/** How long this process itself stood still, since that looks like a late answer. */
class Pulse {
  #last = performance.now();
  #longestMs = 0;
  readonly #timer = setInterval(() => this.#beat(), PULSE_MS);

  /** Ends it; answers the longest pause in milliseconds. */
  end(): number {
    clearInterval(this.#timer);
    this.#beat();
    return Math.max(0, this.#longestMs - PULSE_MS);
  }

  #beat(): void {
    const now = performance.now();
    this.#longestMs = Math.max(this.#longestMs, now - this.#last);
    this.#last = now;
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
  run.from = performance.now();
  const pulse = new Pulse();
  await Promise.race([connections, sleep(plan.measureMs)]);
  run.until = performance.now();
  const longestPauseMs = pulse.end();
  const seconds = (run.until - run.from) / 1000;
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
    bySecond: Array.from({ length: Math.round(seconds) }, (_, second) => run.bySecond[second] ?? 0),
    answered: run.answered,
    longestPauseMs,
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
