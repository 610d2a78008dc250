// The address at which other processes on the same database reach this one. The process listens there and nowhere else,
// and publishes it in its row. A wrong address would be worse than none: a refused connection means to others that this
// process is gone. Only a setting opens a port that other machines may reach: a channel is authenticated, not encrypted.

import { tcpNetwork } from "../channel/tcp.ts";
import type { Network } from "../channel/network.ts";
import { log, messageOf } from "../process/log.ts";
import { type Config, ConfigError } from "../process/settings.ts";
import type { Database } from "../storage/database.ts";
import { seenAddress } from "../storage/nodes/node_store.ts";

const LOOPBACK = "127.0.0.1";
const SET_IT = "set HOLDFAST_CLUSTER_ADDRESS to a host:port at which the other processes reach this one";

/**
 * Opens the network on which other nodes reach this process; null where they cannot, and on the embedded store.
 *
 * @throws ConfigError when HOLDFAST_CLUSTER_ADDRESS cannot be listened on
 */
export async function openNetwork(
  { clusterAddress }: Pick<Config, "clusterAddress">,
  database: Pick<Database, "kind" | "query">,
): Promise<Network | null> {
  if (database.kind === "embedded") return null;
  if (clusterAddress !== null) {
    const fault = await faultOf(clusterAddress);
    if (fault === null) return tcpNetwork(clusterAddress);
    throw new ConfigError(`Cannot start: HOLDFAST_CLUSTER_ADDRESS ${clusterAddress}: ${fault}`);
  }
  const seen = await seenAddress(database);
  // The database is on this machine, so other processes without a set address are on it too.
  if (seen === null) return tcpNetwork(`${LOOPBACK}:0`);
  log("info", `This process opens no port for other processes: where there are any, ${SET_IT}`);
  return null;
}

/** The settings for the place of a database in the list: each has a port of its own, one after another. */
export function portAfter(
  { clusterAddress }: Pick<Config, "clusterAddress">,
  place: number,
): Pick<Config, "clusterAddress"> {
  const [, host, port] = /^(.*):(\d+)$/.exec(clusterAddress ?? "") ?? [];
  if (host === undefined || Number(port) === 0) return { clusterAddress };
  return { clusterAddress: `${host}:${Number(port) + place}` };
}

/** Returns why an address cannot be listened on, or null if it can. */
async function faultOf(address: string): Promise<string | null> {
  try {
    const listening = await tcpNetwork(address).listen((line) => line.close());
    listening.close();
    return null;
  } catch (error) {
    return messageOf(error);
  }
}
