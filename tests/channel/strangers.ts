// What strangers of the tests need to speak with a member: lines, frames and a hello of their own.

import { FrameReader, HELLO_BOUNDS, textFrame } from "../../src/channel/frames.ts";
import { type Intent, meetListener } from "../../src/channel/hello.ts";
import { ChannelStats, type Identity } from "../../src/channel/hub.ts";
import type { Connection } from "../../src/channel/network.ts";
import { SECRET } from "./members.ts";

export const identityOf = (term: number, parts: Partial<Identity> = {}): Identity => ({
  database: "db",
  secret: SECRET,
  protocol: 1,
  term,
  ...parts,
});

/** Waits until a line is closed by the other side. */
export async function closedBy(line: Connection): Promise<void> {
  try {
    while (await line.read() !== null);
  } catch {
    // Broken is closed as well.
  }
}

/** Meets a listener as a member would, with anything wrong that a test likes. */
export async function meet(
  line: Connection,
  term: number,
  expected: number,
  intent: Intent = "channel",
  identity = identityOf(term),
) {
  const stats = new ChannelStats();
  const reader = new FrameReader(line, stats);
  return { reader, found: await meetListener({ connection: line, reader, identity, stats }, expected, intent) };
}

export async function textIn(reader: FrameReader): Promise<Record<string, unknown>> {
  const frame = await reader.next(HELLO_BOUNDS);
  return JSON.parse(new TextDecoder().decode(frame?.payload));
}

/** Passes on what a line says, changed as a test likes. */
export async function pass(from: Connection, to: Connection, change = (text: string) => text): Promise<void> {
  try {
    for (let bytes = await from.read(); bytes !== null; bytes = await from.read()) {
      const frame = new TextDecoder().decode(bytes.subarray(5));
      await to.write(textFrame(bytes[4] as number, change(frame)));
    }
  } catch {
    // Closed.
  }
  to.close();
}
