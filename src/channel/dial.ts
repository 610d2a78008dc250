// Dialing a member's address: connect, prove, and learn who is there. It answers what is known for sure and nothing else:
// a time-out or a broken line says nothing of the process that should be there.

import { CHANNEL_LIMITS } from "../process/limits.ts";
import { FrameReader } from "./frames.ts";
import { type Intent, meetListener } from "./hello.ts";
import { type Line, LineRefused, type Network } from "./line.ts";
import type { ChannelStats, Identity } from "./shapes.ts";

/** Who is at an address: the member that was expected, nobody or somebody else for sure, or that is not known. */
export type Dialed =
  | { readonly state: "alive"; readonly line: Line; readonly reader: FrameReader }
  | { readonly state: "gone" }
  | { readonly state: "unknown" };

/** What dialing needs of its hub. */
export interface Dialer {
  readonly network: Network;
  readonly identity: Identity;
  readonly stats: ChannelStats;
  /** Gives up each dial that is under way. */
  readonly giveUps: Set<() => void>;
}

/** Dials an address within the time of a hello; of a line that is answered the caller is the owner. */
export async function dial(
  dialer: Dialer,
  address: string,
  expected: number,
  intent: Intent,
): Promise<Dialed> {
  let line: Line | null = null;
  let isGivenUp = false;
  const { promise: givenUp, resolve } = Promise.withResolvers<Dialed>();
  const giveUp = () => {
    isGivenUp = true;
    line?.close();
    resolve({ state: "unknown" });
  };
  const timer = setTimeout(giveUp, CHANNEL_LIMITS.helloMs);
  dialer.giveUps.add(giveUp);
  const meet = async (): Promise<Dialed> => {
    line = await dialer.network.connect(address);
    if (isGivenUp) {
      line.close();
      return { state: "unknown" };
    }
    const reader = new FrameReader(line, dialer.stats);
    const found = await meetListener({ ...dialer, line, reader }, expected, intent);
    if (found === expected) return { state: "alive", line, reader };
    line.close();
    // A proof of our own may be one that somebody sent back to us from there: it tells of nobody else.
    return { state: found === dialer.identity.term ? "unknown" : "gone" };
  };
  const learned = meet().catch((error): Dialed => {
    line?.close();
    return { state: error instanceof LineRefused ? "gone" : "unknown" };
  });
  try {
    return await Promise.race([learned, givenUp]);
  } finally {
    clearTimeout(timer);
    dialer.giveUps.delete(giveUp);
  }
}
