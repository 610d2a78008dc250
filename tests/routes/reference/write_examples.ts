// Writes the examples of the API reference anew: `deno task examples`.

import { makeTour } from "./tour.ts";

const FILE = new URL("../../../routes/reference/examples.json", import.meta.url);

await Deno.writeTextFile(FILE, `${JSON.stringify(await makeTour(), null, 2)}\n`);
// The tour's store would keep the process alive.
Deno.exit(0);
