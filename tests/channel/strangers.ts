// Helpers for strangers that talk to a node: connections, frames and handshakes of their own.

import { FrameReader, HELLO_BOUNDS, textFrame } from "../../src/channel/frames.ts";
import { type Intent, meetListener } from "../../src/channel/hello.ts";
import { ChannelStats, type Identity } from "../../src/channel/hub.ts";
import type { Connection } from "../../src/channel/network.ts";
import { SECRET } from "./nodes.ts";

export const identityOf = (term: number, parts: Partial<Identity> = {}): Identity => ({
  database: "db",
  secret: SECRET,
  protocol: 1,
  term,
  ...parts,
});

/** Waits until the other side has closed a connection. */
export async function closedBy(line: Connection): Promise<void> {
  try {
    while (await line.read() !== null);
  } catch {
    // A broken connection is closed as well.
  }
}

/** Runs a dialer's handshake, with any fault that a test sets. */
export async function meet(
  line: Connection,
  term: number,
  expected: number,
  intent: Intent = "channel",
  identity = identityOf(term),
) {
  const stats = new ChannelStats();
  const reader = new FrameReader(line, stats);
  return {
    reader,
    found: await meetListener({ connection: line, reader, identity, stats }, expected, intent),
  };
}

export async function textIn(reader: FrameReader): Promise<Record<string, unknown>> {
  const frame = await reader.next(HELLO_BOUNDS);
  return JSON.parse(new TextDecoder().decode(frame?.payload));
}

/** Passes the frames of a connection on, changed by a test. */
export async function pass(from: Connection, to: Connection, change = (text: string) => text): Promise<void> {
  try {
    for (let bytes = await from.read(); bytes !== null; bytes = await from.read()) {
      const frame = new TextDecoder().decode(bytes.subarray(5));
      await to.write(textFrame(bytes[4] as number, change(frame)));
    }
  } catch {
    // The connection was closed.
  }
  to.close();
}
