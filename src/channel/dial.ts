// Dialing a node's address: connect, prove our identity, and learn which node is there. The result is only what is certain:
// a timeout or a broken connection proves nothing about the process that should be there.

import { CHANNEL_LIMITS } from "../process/channel_limits.ts";
import { FrameReader } from "./frames.ts";
import { type Intent, meetListener } from "./hello.ts";
import { type Connection, ConnectionRefused, type Network } from "./network.ts";
import type { ChannelStats, Identity } from "./shapes.ts";

/** The result of a dial: the expected node answered; it is not there for certain; or unknown. */
type Dialed =
  | { readonly state: "alive"; readonly connection: Connection; readonly reader: FrameReader }
  | { readonly state: "gone" }
  | { readonly state: "unknown" };

/** What dialing needs from its hub. */
export interface Dialer {
  readonly network: Network;
  readonly identity: Identity;
  readonly stats: ChannelStats;
  /** Functions that each give up a dial in progress. */
  readonly giveUps: Set<() => void>;
}

/** Dials an address, within the time of a hello. The caller must close the connection of an "alive" result. */
export async function dial(
  dialer: Dialer,
  address: string,
  expected: number,
  intent: Intent,
): Promise<Dialed> {
  let connection: Connection | null = null;
  let isGivenUp = false;
  const { promise: givenUp, resolve } = Promise.withResolvers<Dialed>();
  const giveUp = () => {
    isGivenUp = true;
    connection?.close();
    resolve({ state: "unknown" });
  };
  const timer = setTimeout(giveUp, CHANNEL_LIMITS.helloMs);
  dialer.giveUps.add(giveUp);
  const meet = async (): Promise<Dialed> => {
    connection = await dialer.network.connect(address);
    if (isGivenUp) {
      connection.close();
      return { state: "unknown" };
    }
    const reader = new FrameReader(connection, dialer.stats);
    const found = await meetListener({ ...dialer, connection, reader }, expected, intent);
    if (found === expected) return { state: "alive", connection, reader };
    connection.close();
    // Our own term: a stranger there may have relayed our connection back to us, which proves nothing.
    return { state: found === dialer.identity.term ? "unknown" : "gone" };
  };
  const learned = meet().catch((error): Dialed => {
    connection?.close();
    return { state: error instanceof ConnectionRefused ? "gone" : "unknown" };
  });
  try {
    return await Promise.race([learned, givenUp]);
  } finally {
    clearTimeout(timer);
    dialer.giveUps.delete(giveUp);
  }
}
