// What the channel needs of a network: lines of bytes and a way to get them. The channel knows nothing else of it, so
// that tests and the simulator put a network of their own in the place of TCP.

/** A connection's bytes both ways: TCP in production, a simulated line in the simulator. */
export interface Line {
  /**
   * The next bytes, never none; null when the other side ended. Rejects when the connection broke. The bytes may be
   * overwritten by the next read.
   */
  read(): Promise<Uint8Array | null>;
  /** Resolves when the bytes are handed on; rejects when the connection broke. */
  write(bytes: Uint8Array): Promise<void>;
  /** Ends both directions; a read or write under way rejects or resolves soon. May be called again. */
  close(): void;
}

/** Where lines come from. */
export interface Network {
  /** Listens; `address` is what others connect to ("host:port"). */
  listen(onLine: (line: Line) => void): Promise<{ readonly address: string; close(): void }>;
  /** @throws LineRefused when nobody listens there: the process is gone; any other error says nothing of it */
  connect(address: string): Promise<Line>;
}

/** Nobody listens at an address: the process that did is gone. */
export class LineRefused extends Error {}
