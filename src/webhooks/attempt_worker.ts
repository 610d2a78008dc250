// The thread that makes attempts: name resolution, TLS and signing must not take time of the thread that answers calls.

import { messageOf } from "../process/log.ts";
import { Caller, realSurroundings } from "./attempt.ts";
import type { AttemptReply, AttemptRequest } from "./attempt_thread.ts";

const thread = self as unknown as {
  onmessage: (event: MessageEvent<AttemptRequest>) => void;
  postMessage(reply: AttemptReply): void;
};

let caller: Caller | null = null;
const running = new Map<number, AbortController>();

thread.onmessage = ({ data: request }) => {
  if (request.kind === "open") caller = new Caller(realSurroundings(request.allowsPrivate));
  else if (request.kind === "end") running.get(request.no)?.abort();
  else void run(request);
};

async function run({ no, attempt }: Extract<AttemptRequest, { kind: "attempt" }>): Promise<void> {
  const ends = new AbortController();
  running.set(no, ends);
  try {
    if (caller === null) throw new Error("The thread is not open");
    thread.postMessage({ no, result: await caller.attempt(attempt, ends.signal) });
  } catch (error) {
    thread.postMessage({ no, error: messageOf(error) });
  } finally {
    running.delete(no);
  }
}
