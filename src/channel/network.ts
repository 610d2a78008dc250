// What the channel needs from a network: connections of bytes. The channel uses nothing else of it, so tests and the
// simulator replace TCP by networks of their own.

/** A stream of bytes both ways: TCP in production, simulated in the simulator. */
export interface Connection {
  /**
   * Reads the next bytes, at least one; null when the other side has ended. Rejects when the connection broke. The next
   * read may overwrite the bytes.
   */
  read(): Promise<Uint8Array | null>;
  /** Resolves when the bytes are handed to the system; rejects when the connection broke. */
  write(bytes: Uint8Array): Promise<void>;
  /** Ends both directions; a read or write in progress ends soon. May be called again. */
  close(): void;
}

/** Where connections come from. */
export interface Network {
  /** Listens; `address` is the "host:port" that others connect to. */
  listen(
    onConnection: (connection: Connection) => void,
  ): Promise<{ readonly address: string; close(): void }>;
  /** @throws ConnectionRefused when no process listens there; any other error proves nothing about the process */
  connect(address: string): Promise<Connection>;
}

/** An address refuses connections: the process that listened there is gone. */
export class ConnectionRefused extends Error {}
