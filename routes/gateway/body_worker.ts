// The thread that reads large bodies of calls, one after the other.

import { messageOf } from "../../src/process/log.ts";
import { refusal } from "../../src/domain/values/refusal.ts";
import { Refused } from "../http/errors.ts";
import type { BodyReply, BodyRequest } from "./body_thread.ts";
import { readCallBody } from "./call_body.ts";

const thread = self as unknown as {
  onmessage: (event: MessageEvent<BodyRequest>) => void;
  postMessage(reply: BodyReply, moved?: Transferable[]): void;
};

thread.onmessage = ({ data: { no, bytes, reading } }) => {
  try {
    const body = readCallBody(bytes, reading);
    thread.postMessage({ no, body }, [body.bytes.buffer]);
  } catch (error) {
    const refused = error instanceof Refused ? error.refusal : refusal("internal_error", messageOf(error));
    thread.postMessage({ no, refusal: refused });
  }
};
