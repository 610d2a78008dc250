// Prints the API as an OpenAPI 3.1 document: `deno task openapi > openapi.json`. It is the document that a running
// service answers at `/api/openapi.json`.

import { SURFACE } from "../../routes/app.ts";
import { makeDocument } from "../../routes/reference/openapi.ts";

console.log(JSON.stringify(makeDocument(SURFACE), null, 2));
