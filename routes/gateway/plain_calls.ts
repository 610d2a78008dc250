// Calls that are neither held nor counted: the models, and the number of tokens of a message.

import type { Catalog } from "../../src/domain/catalog/catalog.ts";
import { allowsModel } from "../../src/domain/catalog/gateway.ts";
import type { ModelServer } from "../../src/process/features.ts";
import { looseOf, parsed } from "../../src/client/loose.ts";
import { refuseInput } from "../http/admission.ts";
import { countAtOwner } from "../http/ask_owner.ts";
import type { Caller } from "../../src/tenant/registry.ts";
import type { RouteMetrics } from "../http/request_metrics.ts";
import { requestId } from "../http/respond.ts";
import { admitCall, type Gateway, refuseUnread } from "./call.ts";
import { type CallKind, serverFor } from "./dialects.ts";
import { recordServerError, refuseCall } from "./errors.ts";
import { readPlainCall, refuseModel } from "./model_call.ts";
import { askServer, keyRefused, passedOn, refusesKey, serverFailed, wholeInTime } from "./model_server.ts";

/** Answers a call that a model server answers without a model's work. */
export function answerPlainCall(
  request: Request,
  kind: CallKind,
  gateway: Gateway,
  metrics: RouteMetrics,
): Promise<Response> {
  const { dialect } = gateway;
  return answered(request, gateway, metrics, async () => {
    const admitted = await admitCall(request, gateway);
    const { world, caller, isCounted } = admitted;
    await refuseUnread(admitted, request, dialect);
    const { model, bytes, type, give } = await readPlainCall(request, kind, admitted)
      .catch((fault) => refuseInput(admitted, request, fault));
    try {
      if (!isCounted) await countAtOwner(world, caller, request);
      const server = serverFor(dialect, world.features, caller.realm.catalog, model);
      const asked = { path: kind.path, body: bytes, type };
      return await asking(gateway, caller, server, asked, request);
    } finally {
      give();
    }
  });
}

/**
 * Answers the list of models, or one of them.
 *
 * @param model null for the list
 */
export function answerModels(
  request: Request,
  model: string | null,
  gateway: Gateway,
  metrics: RouteMetrics,
): Promise<Response> {
  const { dialect } = gateway;
  return answered(request, gateway, metrics, async () => {
    const { world, caller, isCounted } = await admitCall(request, gateway);
    if (!isCounted) await countAtOwner(world, caller, request);
    const { catalog } = caller.realm;
    const server = serverFor(dialect, world.features, catalog, model);
    if (model !== null) refuseModel(model, catalog);
    const path = model === null ? "/models" : `/models/${encodeURIComponent(model)}`;
    const answer = await asking(gateway, caller, server, { path, body: null }, request);
    const isListed = model === null && answer.ok && catalog.gateway.models !== null;
    return isListed ? new Response(await allowedModels(answer, catalog), answer) : answer;
  });
}

async function answered(
  request: Request,
  { dialect }: Gateway,
  metrics: RouteMetrics,
  work: () => Promise<Response>,
): Promise<Response> {
  const startedAt = metrics.starts();
  try {
    const answer = await work();
    const response = passedOn(dialect, answer, answer.body, requestId(request));
    if (!answer.ok) recordServerError(dialect, metrics, request, response);
    return metrics.ended(startedAt, answer.ok ? "ok" : "generation_failed", response);
  } catch (error) {
    return refuseCall(dialect, metrics, startedAt, request, error);
  }
}

async function asking(
  { dialect, calls }: Gateway,
  { app }: Caller,
  server: ModelServer,
  asked: Parameters<typeof askServer>[2],
  request: Request,
): Promise<Response> {
  const givePlace = calls.takePlace(app.record.appId);
  try {
    return await wholeInTime(request.signal, async (signal) => {
      const answer = await askServer(dialect, server, asked, request, signal);
      if (refusesKey(answer)) throw keyRefused(answer);
      return answer;
    });
  } finally {
    givePlace();
  }
}

/** Returns the list of models without those that the app may not call. */
async function allowedModels(answer: Response, catalog: Catalog): Promise<string> {
  const list = looseOf(parsed(await answer.text()));
  if (!Array.isArray(list.data)) throw serverFailed("The model server answered no list of models");
  const data = list.data.filter((model) => {
    const { id } = looseOf(model);
    return typeof id === "string" && allowsModel(catalog, id);
  });
  return JSON.stringify({ ...list, data });
}
