// Everything that the API reference shows: the calls of the API, the pages of the process and the calls of the gateway. It
// is made of definitions alone, without handlers.

import { CONTRACT } from "./contract/contract.ts";
import { GATEWAY_PAGES } from "./gateway/docs.ts";
import type { Surface } from "./reference/openapi.ts";
import { PAGES } from "./reference/pages.ts";

/** The input of the OpenAPI document. */
export const SURFACE: Surface = {
  calls: Object.values(CONTRACT),
  pages: [...PAGES, ...GATEWAY_PAGES],
};
