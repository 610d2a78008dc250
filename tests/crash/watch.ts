// A watch over availability: one app for each process that owns it, each called through every process all the time.
// Every call without a 200 is recorded with its time.

import { type ClusterNode, ownerOf } from "./nodes.ts";
import { pause, until } from "./program.ts";
import { makeApp, type Stage } from "./stage.ts";
import { type Outcome, Wire } from "./wire.ts";
import { isDeep } from "../support/depth.ts";

/** Between two calls of a client; each pair of an owner and a process that is called has one. */
const EVERY_MS = isDeep ? 15 : 40;

/** A call that was not answered 200. */
interface Failure {
  readonly owner: string;
  readonly by: string;
  readonly outcome: string;
  readonly atMs: number;
}

/** Calls to an app of each owner through each node. */
export class Watch {
  calls = 0;
  readonly #apps: ReadonlyMap<ClusterNode, string>;
  readonly #failures: (Failure & { readonly node: ClusterNode })[] = [];
  readonly #answered = new Map<ClusterNode, { readonly sentAt: number; readonly answeredAt: number }[]>();
  #loops: Promise<void>[] = [];
  #isOn = false;

  private constructor(apps: ReadonlyMap<ClusterNode, string>) {
    this.#apps = apps;
  }

  /** Makes apps until each node owns one. */
  static async open(stage: Stage, nodes: readonly ClusterNode[]): Promise<Watch> {
    const apps = new Map<ClusterNode, string>();
    const origin = nodes[0]?.origin as string;
    while (apps.size < nodes.length) {
      const { workspaceId, secretKey } = await makeApp(origin, "Watch");
      const owner = await ownerOf(stage, nodes, workspaceId);
      if (owner !== null) apps.set(owner, secretKey);
    }
    return new Watch(apps);
  }

  /** Calls through some nodes from now on. */
  start(by: readonly ClusterNode[]): void {
    this.#isOn = true;
    this.#loops = [...this.#apps].flatMap(([owner, key]) => by.map((node) => this.#loop(owner, key, node)));
  }

  async stop(): Promise<void> {
    this.#isOn = false;
    await Promise.all(this.#loops);
  }

  /** Waits until an app of an owner that died is answered again; answers how many milliseconds after a moment. */
  async backAfter(owner: ClusterNode, atMs: number, limitMs: number): Promise<number> {
    const first = () => this.#answered.get(owner)?.find(({ sentAt }) => sentAt > atMs)?.answeredAt ?? null;
    return Math.round(await until("what it owned is answered again", limitMs, first) - atMs);
  }

  /** Failed calls to apps of all owners but one. */
  failuresBut(owner: ClusterNode | null): Failure[] {
    return this.#failures.filter(({ node }) => node !== owner).map(shown);
  }

  /** Failed calls that were sent after a moment. */
  failuresAfter(atMs: number): Failure[] {
    return this.#failures.filter((failure) => failure.atMs > atMs).map(shown);
  }

  async #loop(owner: ClusterNode, bearer: string, by: ClusterNode): Promise<void> {
    const wire = new Wire(by.origin);
    for (let count = 0; this.#isOn; count++) {
      const sentAt = performance.now();
      const call = count % 2 === 0
        ? { method: "POST", path: "/api/v1/reserve", bearer, body: { userId: "u", event: "image.x" } }
        : { method: "GET", path: "/api/v1/usage?userId=u", bearer };
      const outcome = await wire.call(call);
      this.calls++;
      const name = nameOf(outcome);
      if (name === "200") {
        const known = this.#answered.get(owner) ?? [];
        known.push({ sentAt, answeredAt: performance.now() });
        this.#answered.set(owner, known);
      } else {
        const failure = { owner: owner.origin, by: by.origin, outcome: name, atMs: sentAt };
        this.#failures.push({ ...failure, node: owner });
      }
      await pause(EVERY_MS);
    }
    wire.close();
  }
}

function shown({ owner, by, outcome, atMs }: Failure): Failure {
  return { owner, by, outcome, atMs: Math.round(atMs) };
}

function nameOf(outcome: Outcome): string {
  return outcome.kind === "answer"
    ? `${outcome.answer.status} ${JSON.stringify(outcome.answer.body.error ?? "")}`.replace(/ ""$/, "")
    : outcome.kind;
}
