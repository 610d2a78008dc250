// A middleware for Hono: `holdfast-client/hono`. It reserves before the handler of a
// route runs, and commits or releases by the outcome.

import type { Context, Env, MiddlewareHandler } from "npm:hono@4.13.19";
import { HoldfastError } from "./errors.ts";
import { refusalOf } from "./model_calls.ts";
import {
  releaseWork,
  type ReservedWork,
  reserveWork,
  settleWork,
  type SettlingCalls,
} from "./with_reservation.ts";
import type { DecisionOptions, Held, Unmetered } from "./metering_types.ts";
import type { CommitOptions, Metadata, ReserveOptions } from "./wire_types.ts";

/** The user and event of a metered route. */
// deno-lint-ignore no-explicit-any -- as in Hono's own types, so that a context has every variable
export interface MeterOptions<E extends Env = any> extends ReserveOptions, DecisionOptions {
  /** A client with a secret key. */
  readonly client: SettlingCalls;
  /** The user's id, or a function that returns it for each request. */
  readonly userId: string | ((context: Context<E>) => string | Promise<string>);
  readonly event: string;
  /** How many, such as images: 1 by default. */
  readonly count?: ReserveOptions["count"];
  /** For audio and video the seconds. */
  readonly quantity?: number | undefined;
  readonly metadata?: Metadata | ((context: Context<E>) => Metadata) | undefined;
  /** The usage of the handler; by default the amounts that were reserved. */
  readonly commit?: ((context: Context<E>) => CommitOptions | undefined) | undefined;
}

/**
 * Meters a route: a status below 400 commits, and 400 or above or a throw releases. A refused request gets 429 in the
 * envelope of the service, with the first reason as code, and the handler does not run.
 *
 * @example
 * ```tsx
 * const userId = (context: Context) => context.req.header("x-user") ?? "";
 * app.post("/images", meter({ client, userId, event: "image.render" }), (context) => context.json({ url: "..." }));
 * ```
 */
// deno-lint-ignore no-explicit-any -- as above
export function meter<E extends Env = any>(options: MeterOptions<E>): MiddlewareHandler<E> {
  const { client, userId, metadata, commit, ...work } = options;
  return async (context, next) => {
    const user = typeof userId === "function" ? await userId(context) : userId;
    const described = typeof metadata === "function" ? metadata(context) : metadata;
    const asked: ReservedWork = { ...work, userId: user, metadata: described };
    let hold: Held | Unmetered;
    try {
      const answer = await reserveWork(client, asked);
      if (!answer.allowed) throw refusalOf(answer);
      hold = answer;
    } catch (error) {
      if (!(error instanceof HoldfastError) || !isRefusal(error)) throw error;
      return refuse(error);
    }
    const release = async (error: unknown) => {
      const reason = `The request ended with status ${context.res.status}`;
      await releaseWork(client, hold, { reason, error, errorCode: String(context.res.status) });
    };
    try {
      await next();
    } catch (error) {
      await release(error);
      throw error;
    }
    // Hono has turned an error of the handler into an answer, and keeps the error in the context.
    if (context.error !== undefined || context.res.status >= 400) await release(context.error);
    else await settleWork(client, { hold, asked }, [commit?.(context) ?? {}]);
  };
}

/** A refusal in the form of the service. */
function refuse({ code, message, details, status, retryAfterMs }: HoldfastError): Response {
  const error = { code, message, ...details === undefined ? {} : { details } };
  const headers: HeadersInit = retryAfterMs === null
    ? {}
    : { "retry-after": String(Math.ceil(retryAfterMs / 1000)) };
  return Response.json({ ok: false, error }, { status, headers });
}

/** Whether the request is refused, and not broken: by a limit, or for a model without a price. */
function isRefusal({ code, status }: HoldfastError): boolean {
  return status === 429 || code === "unpriced_model";
}
