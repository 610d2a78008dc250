// The load generator, a process of its own: reads a LoadPlan from stdin, keeps one request in flight on each
// keep-alive connection (a closed loop), and prints a LoadReport. Everything it sends is built beforehand and answers
// are read as bytes, because it shares the cores with what it measures; the README has its cost beside autocannon's.
import { AnswerReader, bytes, find } from "./http_reader.ts";
import { callReport, Histogram } from "./histogram.ts";
import { EVENTS, type LoadPlan, type LoadReport, shuffled, userId, USERS } from "./load_plan.ts";

const ALLOWED = bytes('"allowed":true');
const RESERVATION = bytes('"reservationId":"');
const QUOTE = bytes('"');
const CONNECTION_FAULTS_MAX = 100;

function request(plan: LoadPlan, path: string, body: string): Uint8Array<ArrayBuffer> {
  const head = `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1:${plan.port}\r\n` +
    `authorization: ${plan.authorization}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
  return bytes(head + body);
}

function reserveRequests(plan: LoadPlan): Uint8Array<ArrayBuffer>[] {
  const order = plan.users === "hot" ? Uint32Array.of(0) : shuffled(USERS, plan.seed);
  return Array.from(
    order,
    (n) =>
      request(
        plan,
        "/api/v1/reserve",
        JSON.stringify({ userId: userId(n), event: EVENTS[plan.paidBy], count: 1 }),
      ),
  );
}

/** One run: the state that its connections share. */
class Run {
  readonly reserve = new Histogram();
  readonly commit = new Histogram();
  readonly failures: Record<string, number> = {};
  firstFailure: string | null = null;
  measuring = false;
  stopped = false;
  readonly #plan: LoadPlan;
  readonly #requests: Uint8Array<ArrayBuffer>[];
  #next = 0;
  #faults = 0;

  constructor(plan: LoadPlan) {
    this.#plan = plan;
    this.#requests = reserveRequests(plan);
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
    while (!this.stopped) {
      const body = this.#requests[this.#next]!;
      this.#next = this.#next + 1 === this.#requests.length ? 0 : this.#next + 1;
      await this.#call(connection, answer, body, this.reserve);
      if (answer.status !== 200) {
        await sleep(1);
      } else if (find(answer.buffer, ALLOWED, answer.bodyStart, answer.bodyEnd) < 0) {
        this.#fail("refused", answer.bodyText());
      } else if (this.#plan.pair) {
        await this.#call(connection, answer, commit.settling(answer), this.commit);
      }
    }
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
      this.#request = request(
        this.#plan,
        "/api/v1/commit",
        JSON.stringify({ reservationId: "x".repeat(length) }),
      );
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
  all.add(run.reserve);
  all.add(run.commit);
  return {
    seconds,
    reserve: callReport(run.reserve, seconds),
    commit: plan.pair ? callReport(run.commit, seconds) : null,
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
