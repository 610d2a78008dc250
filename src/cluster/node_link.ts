// Receives what arrives by the channels of other nodes: notifications go to this node, calls that were passed on go to
// the routes.

import { Hub, type Receiver, type Reply } from "../channel/hub.ts";
import type { Network } from "../channel/network.ts";
import type { ClusterNode } from "./node.ts";
import type { Note } from "./parts.ts";
import { notRun, type PassedCall } from "./passing.ts";
import type { ClusterCounts } from "./cluster_counts.ts";

/** Answers calls that other nodes pass on. */
export type PassedHandlers = Pick<Receiver, "onRequest"> & {
  onCall(call: unknown, from: number): ReturnType<Receiver["onCall"]>;
};

/** The receiver of one term's channels; `node` is set once the term is assembled. */
export class NodeLink implements Receiver {
  hub: Hub | null = null;
  node: ClusterNode | null = null;
  readonly #handlers: () => PassedHandlers | null;
  readonly #counts: ClusterCounts;

  constructor(handlers: () => PassedHandlers | null, counts: ClusterCounts) {
    this.#handlers = handlers;
    this.#counts = counts;
  }

  /** Listens for other nodes; returns the address, or null without a network. */
  async open(
    network: Network | null,
    identity: ConstructorParameters<typeof Hub>[1],
  ): Promise<string | null> {
    if (network === null) return null;
    this.hub = new Hub(network, identity, this, this.#counts.channels);
    return await this.hub.open();
  }

  onCall(call: unknown, from: number): Promise<Reply> {
    const [relayTo, passed] = call as PassedCall;
    const handlers = this.#handlers();
    const { node } = this;
    if (node === null || handlers === null) return Promise.resolve(notRun(null));
    if (relayTo === 0 || relayTo === node.term) return handlers.onCall(passed, from);
    return node.relay([0, passed], relayTo).then((reply) => reply ?? notRun(null));
  }

  onRequest(...call: Parameters<Receiver["onRequest"]>): ReturnType<Receiver["onRequest"]> {
    const handlers = this.#handlers();
    if (handlers === null) return Promise.resolve({ ...notRun(null), body: null });
    return handlers.onRequest(...call);
  }

  onNote(note: unknown): void {
    this.node?.onNote(note as Note);
  }

  onOpened(term: number): void {
    this.node?.onOpened(term);
  }

  onLost(term: number, isRefused: boolean): void {
    this.node?.onLost(term, isRefused);
  }
}
