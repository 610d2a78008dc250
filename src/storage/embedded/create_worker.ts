// Creates an embedded store in a worker. initdb needs several hundred megabytes: a process would keep them, a worker frees
// them when it ends.

import { openLite } from "./durable_files.ts";

/** The worker's answer: null when the store is created, else the error message. */
export type CreateAnswer = { readonly error: string | null };

const worker = self as unknown as {
  onmessage: (event: MessageEvent<string>) => void;
  postMessage(answer: CreateAnswer): void;
};

worker.onmessage = async ({ data: folder }) => {
  try {
    const { lite } = await openLite(folder, (error) => worker.postMessage({ error: error.message }));
    await lite.close();
    worker.postMessage({ error: null });
  } catch (error) {
    worker.postMessage({ error: String(error) });
  }
};
