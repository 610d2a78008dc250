// Where other processes on the same database reach this one. It listens there and nowhere else, and tells it in its
// row. An address that leads nowhere would be worse than none: a refused connection tells others that this process is
// gone.

import { tcpNetwork } from "../channel/tcp.ts";
import type { Network } from "../channel/line.ts";
import { log, messageOf } from "../process/log.ts";
import { type Config, ConfigError, WILDCARD_HOSTS } from "../process/settings.ts";
import type { Database } from "../storage/database.ts";
import { seenAddress } from "../storage/members/member_store.ts";

const LOOPBACK = "127.0.0.1";
const SET_IT = "set HOLDFAST_CLUSTER_ADDRESS to a host:port at which the other processes reach this one";

/**
 * How members reach this process; null where they cannot, or where there are none.
 *
 * @throws ConfigError when the address of the settings cannot be listened on
 */
export async function openNetwork(
  { clusterAddress, host }: Pick<Config, "clusterAddress" | "host">,
  database: Pick<Database, "kind" | "query">,
): Promise<Network | null> {
  if (database.kind === "embedded") return null;
  if (clusterAddress !== null) {
    const fault = await faultOf(clusterAddress);
    if (fault === null) return tcpNetwork(clusterAddress);
    throw new ConfigError(`Cannot start: HOLDFAST_CLUSTER_ADDRESS ${clusterAddress}: ${fault}`);
  }
  const seen = await seenAddress(database);
  // Beside its database, the processes that have no address either are on this machine too.
  if (seen === null) return tcpNetwork(addressText(WILDCARD_HOSTS.has(host) ? LOOPBACK : host));
  const address = addressText(seen);
  const fault = await faultOf(address);
  if (fault === null) {
    log(
      "warn",
      `Other processes are told the address that the database sees, ${seen}: if they are to reach this one otherwise, ${SET_IT}`,
    );
    return tcpNetwork(address);
  }
  log("warn", `Other processes cannot reach this one: ${SET_IT}`, { seen, error: fault });
  return null;
}

/** Why an address cannot be listened on; null where it can. */
async function faultOf(address: string): Promise<string | null> {
  try {
    const listening = await tcpNetwork(address).listen((line) => line.close());
    listening.close();
    return null;
  } catch (error) {
    return messageOf(error);
  }
}

/** A free port of a host. */
function addressText(host: string): string {
  return host.includes(":") ? `[${host}]:0` : `${host}:0`;
}
