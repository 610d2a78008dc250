// Bare connections: bytes as a test says, whatever a client library would make of them.

const ENCODER = new TextEncoder();

/** What came back on a connection: the statuses of the answers, and the text of them all. */
export interface RawAnswer {
  readonly statuses: readonly number[];
  readonly text: string;
}

/** Text as bytes, one byte a character: a test writes "\xff" for the byte. */
export function latin1(text: string): Uint8Array {
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

/** Opens a connection to a server. */
export function connect(origin: string): Promise<Deno.TcpConn> {
  const { hostname, port } = new URL(origin);
  return Deno.connect({ hostname, port: Number(port) });
}

/** Writes everything; a peer that closed in between is no fault. */
export async function write(connection: Deno.Conn, bytes: Uint8Array | string): Promise<void> {
  let left = typeof bytes === "string" ? ENCODER.encode(bytes) : bytes;
  try {
    while (left.length > 0) left = left.subarray(await connection.write(left));
  } catch {
    // The server has seen enough.
  }
}

/**
 * How a connection ends: the server closes it by itself, or when it hears that no more will come, or the client does
 * as soon as one answer is there.
 */
export type End = "server" | "no more" | "one answer";

/** Sends bytes on a connection of their own and reads to its end. */
export async function sendRaw(origin: string, bytes: Uint8Array, end: End): Promise<RawAnswer> {
  const connection = await connect(origin);
  try {
    await write(connection, bytes);
    if (end === "no more") await connection.closeWrite().catch(() => {});
    const text = await readAll(connection, end === "one answer");
    return { statuses: [...text.matchAll(/HTTP\/1\.[01] (\d{3})/g)].map((match) => Number(match[1])), text };
  } finally {
    connection.close();
  }
}

async function readAll(connection: Deno.Conn, isOne: boolean): Promise<string> {
  const decoder = new TextDecoder("latin1");
  const buffer = new Uint8Array(65_536);
  let text = "";
  try {
    for (let read; (read = await connection.read(buffer)) !== null;) {
      text += decoder.decode(buffer.subarray(0, read));
      if (isOne && text.includes("\r\n\r\n")) break;
    }
  } catch {
    // A reset is an end as well.
  }
  return text;
}

/** Closes connections, whether they are open or not. */
export function closeAll(connections: readonly Deno.Conn[]): void {
  for (const connection of connections) {
    try {
      connection.close();
    } catch {
      // It was closed already.
    }
  }
}

/** How many files a process may open here. */
export async function openFilesMax(): Promise<number> {
  const { stdout } = await new Deno.Command("sh", { args: ["-c", "ulimit -n"], stdout: "piped" }).output();
  const text = new TextDecoder().decode(stdout).trim();
  return text === "unlimited" ? Number.MAX_SAFE_INTEGER : Number(text);
}

/** The memory of a process in bytes. */
export async function memoryOf(pid: number): Promise<number> {
  const args = ["-o", "rss=", "-p", String(pid)];
  const { stdout } = await new Deno.Command("ps", { args, stdout: "piped" }).output();
  return Number(new TextDecoder().decode(stdout)) * 1024;
}
