// The worker thread of a drainer: opens its own session, then handles one message after another, and replays beside them.
// After a close it may be asked to open another one.

import { messageOf } from "../../process/log.ts";
import type { DrainReply, DrainRequest, NumberedRequest } from "./drain_thread.ts";
import { type Drainer, openSessionDrainer } from "./drainer.ts";
import { openPostgres } from "../postgres_database.ts";
import type { Database } from "../database.ts";
import { sessionNameOf } from "./ranges.ts";
import { SignOfLife } from "./sign_of_life.ts";

const thread = self as unknown as {
  onmessage: (event: MessageEvent<DrainRequest>) => void;
  postMessage(reply: DrainReply): void;
};

let drainer: Drainer | null = null;
let database: Database | null = null;
let life: SignOfLife | null = null;
let last: Promise<void> = Promise.resolve();

thread.onmessage = ({ data: request }) => {
  if (request.kind === "keep") keep(request);
  else if (request.kind === "hurry") drainer?.hurry();
  else if (request.kind === "alive") life?.hear();
  // Beside the drains: it may wait for another node's replay.
  else if (request.kind === "replay") void answer(request);
  else last = last.then(() => answer(request));
};

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

function keep({ bytes, batches }: Extract<DrainRequest, { kind: "keep" }>): void {
  let from = 0;
  for (const { seq, end } of batches) {
    drainer?.keep({ seq, payload: decoder.decode(bytes.subarray(from, end)) });
    from = end;
  }
}

async function answer(request: NumberedRequest): Promise<void> {
  try {
    await handle(request);
    thread.postMessage({ id: request.id, error: null });
  } catch (error) {
    thread.postMessage({ id: request.id, error: messageOf(error) });
  }
}

async function handle(request: NumberedRequest): Promise<void> {
  switch (request.kind) {
    case "open":
      database = openPostgres(request.url, 1, sessionNameOf(request.term), null, request.expected);
      drainer = await openSessionDrainer(database);
      life = new SignOfLife(database, request.term, () => thread.postMessage({ id: 0, error: null }));
      return;
    case "drain":
      return await opened().drain(request.seqs, request.spreadMs);
    case "replay":
      return await opened().replay(request.term);
    case "close":
      life?.close();
      await Promise.all([drainer?.close(), database?.close()]);
      drainer = database = life = null;
  }
}

function opened(): Drainer {
  if (drainer === null) throw new Error("The drainer is closed");
  return drainer;
}
