// Looks for the planted bugs that it is asked for, in a thread of its own: a simulation replaces globals.

import { PLANTED } from "./bugs.ts";
import { hunt } from "./hunt.ts";

const port = self as unknown as Worker;

port.onmessage = async ({ data: name }: MessageEvent<string>) => {
  const bug = PLANTED.find((each) => each.name === name);
  port.postMessage(bug === undefined ? null : await hunt(bug));
};
