// A model dressed up as a system, to try workloads and their driver on: its placeholders become ids of the real
// form and back.

import {
  type CatalogDocument,
  EITHER,
  type ModelOptions,
  type ModelReply,
  type ModelRequest,
} from "./document.ts";
import { Model } from "./model.ts";

export function shadow(
  catalog: CatalogDocument,
  options: ModelOptions = {},
): (request: ModelRequest, nowMs: number) => ModelReply {
  const model = new Model(catalog, options);
  return (request, nowMs) => {
    const text = JSON.stringify(request)
      .replaceAll(/"(rsv|evt|sub|crb|run)_(\d+)"/g, '"«$1_ $2»"')
      .replaceAll(/"cursor":"(\d+)"/g, '"cursor":"« $1»"');
    const reply = JSON.stringify(model.handle(JSON.parse(text), nowMs)).replaceAll(`"${EITHER}"`, "false")
      .replaceAll(/"«\d+ or (\d+)»"/g, "$1");
    return JSON.parse(reply.replaceAll(/«(\w*) (\d+)»/g, "$1$2"));
  };
}
