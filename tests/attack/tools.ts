// What attacks have in common: attackers side by side, bodies that end or do not, heads of requests.

import type { AttackScene } from "./scene.ts";

/** One attack. It runs until the signal ends it, and then reports what it achieved. */
export interface Attack {
  readonly name: string;
  /** Whether it is for a store on a server alone. Default false. */
  readonly needsServer?: boolean;
  /** Whether the gateway is on, with a model server of the scene behind it. Default false. */
  readonly gateway?: boolean;
  /** How many processes serve the store, on a server. Default 1. */
  readonly processes?: number;
  /** Prepares what the attack needs, or a part of it, before anything is measured. */
  prepare?(scene: AttackScene, part: number): Promise<void>;
  /** Attacks until the signal; returns what it broke, or null. */
  run(scene: AttackScene, signal: AbortSignal): Promise<string | null>;
}

/** A number of attackers side by side, each at it again and again. */
export async function together(count: number, signal: AbortSignal, act: (index: number) => Promise<unknown>) {
  await Promise.all(Array.from({ length: count }, async (_, index) => {
    while (!signal.aborted) {
      await act(index).catch(() => {});
      await new Promise((resolve) => setTimeout(resolve));
    }
  }));
}

export const bytesOf = (text: string) => new TextEncoder().encode(text);

/** Sends a body and reads its answer; returns the status. */
export async function post(
  scene: AttackScene,
  path: string,
  body: Uint8Array<ArrayBuffer>,
  key: string | null,
  type = "application/json",
) {
  const headers: Record<string, string> = { "content-type": type };
  if (key !== null) headers.authorization = `Bearer ${key}`;
  const response = await fetch(scene.origin + path, {
    method: "POST",
    headers,
    body,
    redirect: "manual",
    signal: AbortSignal.timeout(60_000),
  });
  await response.arrayBuffer();
  return response.status;
}

/** Opens a connection, sends the head of a request and some of its body, and then nothing, until the signal. */
export async function hang(
  scene: AttackScene,
  head: string,
  body: Uint8Array,
  signal: AbortSignal,
): Promise<void> {
  const { hostname, port } = new URL(scene.origin);
  using connection = await Deno.connect({ hostname, port: Number(port) });
  const send = async () => {
    for (const bytes of [bytesOf(head), body]) {
      for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
    }
    const answer = new Uint8Array(1024);
    while (await connection.read(answer) !== null);
  };
  // A write that the service does not read goes on after its connection is closed here.
  await Promise.race([send(), untilEnd(signal)]);
}

export function headOf(method: string, path: string, headers: Record<string, string | number>): string {
  const lines = Object.entries({ host: "holdfast.test", ...headers }).map(([name, value]) =>
    `${name}: ${value}`
  );
  return [`${method} ${path} HTTP/1.1`, ...lines, "", ""].join("\r\n");
}

/** Resolves at the signal. */
export function untilEnd(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
