// The plain client: reserve before the work, commit when it is done, release when it failed.

import process from "node:process";
import { createClient } from "holdfast-client";

const { HOLDFAST_URL = "http://127.0.0.1:8000", HOLDFAST_KEY = "", HOLDFAST_USER = "user_demo" } =
  process.env;
const holdfast = createClient({ apiKey: HOLDFAST_KEY, baseUrl: HOLDFAST_URL });

/** Your work. */
function draw(what: string): Promise<string> {
  return what === "" ? Promise.reject(new Error("nothing to draw")) : Promise.resolve(`an image of ${what}`);
}

async function drawFor(userId: string, what: string, count: number): Promise<string> {
  const hold = await holdfast.reserve(userId, "image.render", undefined, undefined, { count });
  if (!hold.allowed) return `refused: ${hold.reasons.join(", ")}`;
  let image: string;
  try {
    image = await draw(what);
  } catch (error) {
    await holdfast.release(hold.reservationId, { reason: String(error) });
    return `released: ${error}`;
  }
  const { groups } = await holdfast.commit(hold.reservationId, { costCents: 4.2 });
  return `committed: ${image}; ${groups.map(({ current, quota }) => `${current} of ${quota} used`)}`;
}

console.log(await drawFor(HOLDFAST_USER, "a pond", 1));
console.log(await drawFor(HOLDFAST_USER, "", 1));
console.log(await drawFor(HOLDFAST_USER, "a flock", 1000));
