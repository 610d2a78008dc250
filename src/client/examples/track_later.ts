// Many small events: `trackLater` collects them and sends them in batches. `flush` waits until all of them are sent.

import process from "node:process";
import { createClient } from "holdfast-client";

const { HOLDFAST_URL = "http://127.0.0.1:8000", HOLDFAST_KEY = "", HOLDFAST_USER = "user_demo" } =
  process.env;
const holdfast = createClient({
  apiKey: HOLDFAST_KEY,
  baseUrl: HOLDFAST_URL,
  onTrackError: (error, { userId, event }) => {
    console.log(`not counted: ${event} of ${userId}: ${error.code}`);
  },
});

for (let page = 0; page < 30; page++) {
  holdfast.trackLater(HOLDFAST_USER, "image.thumbnail", 1, { page });
}
holdfast.trackLater(HOLDFAST_USER, "image.thumbnail", 1000);
await holdfast.flush();

const { counters } = await holdfast.usage(HOLDFAST_USER, "image.thumbnail");
console.log(counters.map(({ label, count, quota }) => `${label}: ${count} of ${quota}`).join("\n"));
