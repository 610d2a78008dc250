// A middleware for Hono: `holdfast-client/hono`. It reserves before the handler of a
// route runs, and commits or releases by the outcome.

import type { Context, Env, MiddlewareHandler } from "npm:hono@4.13.19";
import { HoldfastError } from "./errors.ts";
import type { SettlingCalls } from "./with_reservation.ts";
import type { CommitOptions, Metadata, ReserveOptions } from "./wire_types.ts";

/** The user and event of a metered route. */
// deno-lint-ignore no-explicit-any -- as in Hono's own types, so that a context has every variable
export interface MeterOptions<E extends Env = any> extends ReserveOptions {
  /** A client with a secret key. */
  readonly client: SettlingCalls;
  /** The user's id, or a function that returns it for each request. */
  readonly userId: string | ((context: Context<E>) => string | Promise<string>);
  readonly event: string;
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
  const { client, userId, event, quantity, metadata, commit, ...size } = options;
  return async (context, next) => {
    const user = typeof userId === "function" ? await userId(context) : userId;
    const described = typeof metadata === "function" ? metadata(context) : metadata;
    let reservationId: string;
    try {
      const hold = await client.reserve(user, event, quantity, described, size);
      if (!hold.allowed) {
        const [code = "limit_reached"] = hold.reasons;
        const details = { reasons: hold.reasons, groups: hold.groups };
        return refuse(code, `The request was refused: ${hold.reasons.join(", ")}`, details);
      }
      reservationId = hold.reservationId;
    } catch (error) {
      if (!(error instanceof HoldfastError) || error.status !== 429) throw error;
      return refuse(error.code, error.message, error.details);
    }
    const release = async (error: unknown) => {
      const reason = `The request ended with status ${context.res.status}`;
      const errorCode = error instanceof Error ? error.name : String(context.res.status);
      // A failed release needs no error: the reservation expires by itself.
      await client.release(reservationId, { reason, errorCode }).catch(() => {});
    };
    try {
      await next();
    } catch (error) {
      await release(error);
      throw error;
    }
    // Hono has turned an error of the handler into an answer, and keeps the error in the context.
    if (context.error !== undefined || context.res.status >= 400) await release(context.error);
    else await client.commit(reservationId, commit?.(context) ?? {});
  };
}

/** A refusal in the form of the service. */
function refuse(code: string, message: string, details: unknown): Response {
  const error = { code, message, ...details === undefined ? {} : { details } };
  return Response.json({ ok: false, error }, { status: 429 });
}
