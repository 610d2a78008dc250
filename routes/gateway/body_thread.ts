// Reads large bodies of calls in a thread of their own, seen from the thread that answers. The thread starts with the first
// such body and ends when there has been none for a while. The bytes move there and back without a copy.
//
// Bodies that wait keep their share of the memory for large bodies, which bounds how many there are.

import { BODY_COUNTS } from "../../src/process/counts/sent_counts.ts";
import { BODY_LIMITS } from "../../src/process/sent_limits.ts";
import { log } from "../../src/process/log.ts";
import type { Refusal } from "../../src/domain/values/refusal.ts";
import type { BodyBytes } from "../http/body.ts";
import { Refused, refusedWith } from "../http/errors.ts";
import { type CallBody, type CallReading, readCallBody } from "./call_body.ts";

/** A message to the thread. */
export interface BodyRequest {
  readonly no: number;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly reading: CallReading;
}

/** Its reply to each. */
export type BodyReply =
  | { readonly no: number; readonly body: CallBody }
  | { readonly no: number; readonly refusal: Refusal };

interface Waiter {
  readonly resolve: (body: CallBody) => void;
  readonly reject: (reason: Error) => void;
}

/** The thread of a process. */
class BodyThread {
  readonly #waiting = new Map<number, Waiter>();
  #worker: Worker | null = null;
  #last = 0;
  #idle: ReturnType<typeof setTimeout> | undefined;

  read(bytes: Uint8Array<ArrayBuffer>, reading: CallReading): Promise<CallBody> {
    clearTimeout(this.#idle);
    const no = ++this.#last;
    return new Promise((resolve, reject) => {
      this.#waiting.set(no, { resolve, reject });
      BODY_COUNTS.inThread = this.#waiting.size;
      this.#worker ??= this.#start();
      const request: BodyRequest = { no, bytes, reading };
      this.#worker.postMessage(request, [bytes.buffer]);
    });
  }

  #start(): Worker {
    const worker = new Worker(new URL("./body_worker.ts", import.meta.url), { type: "module" });
    worker.onmessage = ({ data: reply }: MessageEvent<BodyReply>) => {
      const waiter = this.#waiting.get(reply.no);
      this.#waiting.delete(reply.no);
      BODY_COUNTS.inThread = this.#waiting.size;
      if (this.#waiting.size === 0) this.#rest();
      if ("body" in reply) waiter?.resolve(reply.body);
      else waiter?.reject(refusedWith(reply.refusal));
    };
    worker.onerror = (event) => {
      event.preventDefault();
      log("error", "The thread that reads large bodies failed", { error: event.message });
      this.#end();
    };
    return worker;
  }

  /** Ends the thread after a while, unless it gets work: it keeps the memory of its largest body. */
  #rest(): void {
    this.#idle = setTimeout(() => this.#end(), BODY_LIMITS.threadIdleMs);
    Deno.unrefTimer(this.#idle);
  }

  #end(): void {
    this.#worker?.terminate();
    this.#worker = null;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    BODY_COUNTS.inThread = 0;
    for (const { reject } of waiting) {
      reject(new Refused("unavailable", "The thread that reads large request bodies failed; retry"));
    }
  }
}

const thread = new BodyThread();

/** Reads the body of a call: a large one in the thread. The bytes belong to the result from now on. */
export async function readAside(
  { bytes, structure }: Pick<BodyBytes, "bytes" | "structure">,
  reading: CallReading,
): Promise<CallBody> {
  const isLarge = bytes.byteLength > BODY_LIMITS.readHereBytesMax ||
    structure > BODY_LIMITS.readHereStructureMax;
  return isLarge ? await thread.read(bytes, reading) : readCallBody(bytes, reading);
}
