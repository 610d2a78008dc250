// Some connections to a server, with a queue in front. The driver sends a statement behind one that still runs when no
// connection is idle, and then it waits for that one although others are free sooner. Here a statement gets a connection of
// its own, or waits until the first one is free.

import { Unavailable } from "../../actors/port.ts";

/** One place for a connection; null while it has none and none is being opened. */
interface Place<Client> {
  client: Promise<Client> | null;
}

/** A bounded number of clients, each with one connection. */
export class Connections<Client> {
  readonly #open: (onClose: () => void) => Promise<Client>;
  readonly #places: readonly Place<Client>[];
  readonly #free: Place<Client>[];
  readonly #waiting: ((place: Place<Client>) => void)[] = [];
  #isClosed = false;

  /**
   * @param open makes a client and connects it; `onClose` is to be called when its connection is lost: the client is never
   *   used again, and the next statement makes another one
   */
  constructor(max: number, open: (onClose: () => void) => Promise<Client>) {
    this.#open = open;
    this.#places = Array.from({ length: max }, () => ({ client: null }));
    this.#free = [...this.#places];
  }

  /** Runs work with a client that no other work has meanwhile. */
  async use<T>(work: (client: Client) => Promise<T>): Promise<T> {
    const place = this.#free.pop() ?? await new Promise<Place<Client>>((free) => this.#waiting.push(free));
    try {
      if (this.#isClosed) throw new Unavailable("The connections to the database are closed");
      return await work(await (place.client ??= this.#connect(place)));
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free.push(place);
      else next(place);
    }
  }

  /** Takes no more work; returns the clients, for the caller to end. */
  close(): Promise<Client>[] {
    this.#isClosed = true;
    return this.#places.flatMap(({ client }) => client === null ? [] : [client]);
  }

  #connect(place: Place<Client>): Promise<Client> {
    const forget = () => {
      if (place.client === client) place.client = null;
    };
    const client = this.#open(forget);
    client.catch(forget);
    return client;
  }
}
