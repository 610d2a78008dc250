// The address at which other nodes reach a process: it is right, or it is not published.

import assert from "node:assert/strict";
import { ConnectionRefused, type Network } from "../../src/channel/network.ts";
import { tcpNetwork } from "../../src/channel/tcp.ts";
import { ConfigError } from "../../src/process/settings.ts";
import { openNetwork } from "../../src/cluster/cluster_address.ts";
import type { Database } from "../../src/storage/database.ts";
import { linesOf } from "../observability/log_lines.ts";

/** A server that sees this process come from an address; null: from its own machine. */
function serverThatSees(client: string | null) {
  const query = () => Promise.resolve([{ client, isSame: client === null }]);
  return { kind: "postgres", query } as unknown as Database;
}

/** Listens briefly; returns the published host. */
async function toldBy(network: Network | null): Promise<string | null> {
  if (network === null) return null;
  const { address, close } = await network.listen((line) => line.close());
  close();
  return address.replace(/:\d+$/, "");
}

const UNSET = { clusterAddress: null };

Deno.test("without a setting a process beside the database listens on a loopback address alone", async () => {
  const beside = serverThatSees(null);
  assert.equal(await toldBy(await openNetwork(UNSET, beside)), "127.0.0.1");
  assert.equal(await openNetwork(UNSET, { ...beside, kind: "embedded" }), null);
});

Deno.test("without a setting a process away from the database opens no port, and says which setting does", async () => {
  const lines = await linesOf(async () => {
    for (const seen of ["127.0.0.2", "192.0.2.7"]) {
      assert.equal(await openNetwork(UNSET, serverThatSees(seen)), null);
    }
  });
  assert.equal(lines.length, 2);
  for (const { message } of lines) assert.match(String(message), /set HOLDFAST_CLUSTER_ADDRESS/);
});

Deno.test("an address of the settings that cannot be listened on stops the start", async () => {
  const away = { clusterAddress: "192.0.2.7:7000" };
  await assert.rejects(openNetwork(away, serverThatSees(null)), (error: Error) => {
    assert.ok(error instanceof ConfigError);
    assert.match(error.message, /^Cannot start: HOLDFAST_CLUSTER_ADDRESS 192\.0\.2\.7:7000: /);
    return true;
  });
});

Deno.test("a loopback address of another machine is never a refusal: its process may live", async () => {
  // No process listens there.
  const address = "127.0.0.1:9";
  await assert.rejects(tcpNetwork("127.0.0.1:0").connect(address), ConnectionRefused);
  const elsewhere = tcpNetwork("127.0.0.1:0", "10.0.0.5");
  await assert.rejects(elsewhere.connect(address), (error) => !(error instanceof ConnectionRefused));
});
