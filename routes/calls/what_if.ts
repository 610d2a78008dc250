// What if: tries a catalog on recorded events. Its answer is sent while it is made.

import type { Term } from "../../actors/term.ts";
import {
  type FoldedCatalog,
  TooMuch,
  type WhatIf,
  whatIf as fold,
} from "../../src/operations/what_if/what_if.ts";
import type { Downloads } from "../../src/process/downloads.ts";
import { log, messageOf } from "../../src/process/log.ts";
import { checkCatalog } from "../../src/tenant/catalog/check.ts";
import type { App, AppRealm, Registry } from "../../src/tenant/registry.ts";
import type { RawAnswer } from "../http/answer.ts";
import { type ReadingWorld, worldOf } from "../http/app_world.ts";
import { keylessEndpointsOn } from "../http/endpoint.ts";
import type { KeylessEndpoint } from "../http/endpoint_types.ts";
import { RateLimited, Refused } from "../http/errors.ts";
import { headersOf } from "../http/respond.ts";
import { JSON_LINES, whatIf } from "../contract/what_if.ts";
import type { Database } from "../../src/storage/database.ts";
import { appOf } from "./admin.ts";

/** What a fold uses. */
interface WhatIfWorld extends ReadingWorld {
  readonly registry: Pick<Registry, "apps">;
  readonly term: Pick<Term, "flush">;
  readonly downloads: Downloads;
  readonly database: Database;
}

/** What a fold reads: the app's realm, and times in milliseconds. */
interface Asked {
  readonly mode: "live" | "test";
  readonly from: number;
  readonly to: number;
  /** Null for the catalog in force. */
  readonly catalog: unknown;
}

const RETRY_AFTER_S = 10;

/** Apps with a running fold: each has one at a time. */
const folding = new WeakSet<App>();

export const WHAT_IF: readonly KeylessEndpoint<WhatIfWorld>[] = [
  keylessEndpointsOn<WhatIfWorld>()(whatIf, async ({ world, input, requestId }) => {
    const app = appOf(world, input.appId);
    const { mode, from, to, catalog = null } = input;
    const lines = linesOf(await startFold(world, app, { mode, from, to, catalog }));
    const download = world.downloads.take({ app: input.appId, person: "what-if" });
    if (download === null) throw busy();
    const answer: RawAnswer<string> = new Response(download.stream(lines), {
      headers: headersOf(requestId, JSON_LINES),
    });
    return answer;
  }),
];

/**
 * Starts a fold of an app; one that is given up must be ended by `return`.
 *
 * @throws Refused where the catalog is invalid, or another fold of the app runs
 */
async function startFold(world: WhatIfWorld, app: App, { mode, from, to, catalog }: Asked) {
  const tried = await catalogOf(app.realms[mode], catalog);
  if (folding.has(app)) throw busy();
  await world.term.flush();
  const { realm } = app.realms[mode];
  return alone(app, fold(worldOf(world, app).database, { realm, from, to }, tried));
}

function busy(): RateLimited {
  return new RateLimited(RETRY_AFTER_S, "The app already tries a catalog; wait for its end");
}

/** Runs a fold as the only one of its app. */
async function* alone(app: App, pieces: ReturnType<typeof fold>): ReturnType<typeof fold> {
  if (folding.has(app)) throw busy();
  folding.add(app);
  try {
    return yield* pieces;
  } finally {
    folding.delete(app);
  }
}

/** The catalog in force, or the checked one. @throws Refused where it has faults */
async function catalogOf({ applied }: AppRealm, sent: unknown): Promise<FoldedCatalog> {
  const { priceRows = [], rateRows = [], document = {} } = applied ?? {};
  if (sent === null) return { document, priceRows, rateRows };
  const checked = await checkCatalog(sent, null);
  if ("catalog" in checked) return { document: checked.catalog, priceRows, rateRows };
  throw new Refused("invalid_request", "Catalog is invalid", checked.faults);
}

/** The lines of an answer. */
async function* linesOf(pieces: AsyncGenerator<unknown, WhatIf>): AsyncGenerator<string> {
  try {
    let piece = await pieces.next();
    for (; piece.done !== true; piece = await pieces.next()) {
      yield `${JSON.stringify({ progress: piece.value })}\n`;
    }
    yield `${JSON.stringify({ result: piece.value })}\n`;
  } catch (error) {
    yield `${JSON.stringify({ error: errorOf(error) })}\n`;
  } finally {
    await pieces.return(undefined as never);
  }
}

function errorOf(error: unknown): { readonly code: string; readonly message: string } {
  if (error instanceof TooMuch) return { code: "invalid_request", message: error.message };
  if (error instanceof Refused) return { code: error.refusal.code, message: error.message };
  log("error", "A catalog could not be tried", { error: messageOf(error) });
  return { code: "unavailable", message: "The events could not be read; try again" };
}
