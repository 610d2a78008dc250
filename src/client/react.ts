// Live usage in a React page: `holdfast-client/react`. It needs React 18 or later: the package
// imports "react" in the version of the page.

// @ts-types="npm:@types/react@19.3.0"
import { useEffect, useState } from "npm:react@19.3.1";
import type { HoldfastClient } from "./client.ts";
import { HoldfastError } from "./errors.ts";
import type { Feature, Usage } from "./wire_types.ts";

/** Options of the hook. */
export interface UseUsageOptions {
  /** Make it once, outside of components or with `useMemo`. In a page: with a public key and an end-user token. */
  readonly client: Pick<HoldfastClient, "usage">;
  /** By default the user of the end-user token. */
  readonly userId?: string | undefined;
  /** Lists only groups and credits whose rules cover this event. */
  readonly event?: string | undefined;
  /** Shown until the first state arrives, such as the usage in a page that a server rendered. */
  readonly initialUsage?: Usage | null | undefined;
}

/** The current usage of a user. */
export interface LiveUsage {
  /** null until the first state arrives; the last known usage while there is no connection. */
  readonly usage: Usage | null;
  /** The error that broke the connection or ended the watch; null without an error. */
  readonly error: HoldfastError | null;
  /** Whether `usage` follows every change. */
  readonly isLive: boolean;
}

/** The known usage with its user. */
interface Known extends LiveUsage {
  readonly client: unknown;
  readonly userId: string | undefined;
  readonly event: string | undefined;
}

/**
 * Returns the usage of a user, and renders the component again whenever it changes.
 *
 * @example
 * ```tsx
 * const client = createClient({ apiKey: "pk_live_...", baseUrl: "https://holdfast.example.com", endUserToken });
 *
 * function Left() {
 *   const { usage, isLive } = useUsage({ client });
 *   return <p>{usage?.counters[0]?.remaining ?? "..."} left{isLive ? "" : " (connecting)"}</p>;
 * }
 * ```
 */
export function useUsage({ client, userId, event, initialUsage = null }: UseUsageOptions): LiveUsage {
  const [known, setKnown] = useState<Known | null>(null);
  useEffect(() => {
    const stop = new AbortController();
    const add = (members: Partial<LiveUsage>) => {
      if (stop.signal.aborted) return;
      setKnown((before) => {
        const same = isOf(before) ? before : { usage: null, error: null, isLive: false };
        return { ...same, client, userId, event, ...members };
      });
    };
    const isOf = (one: Known | null): one is Known =>
      one !== null && one.client === client && one.userId === userId && one.event === event;
    client.usage.watch(userId, (usage) => add({ usage, error: null, isLive: true }), {
      signal: stop.signal,
      event,
      onConnection: ({ isLive, error }) => add(isLive ? { error: null } : { isLive, error }),
    }).then(
      ({ reason }) => add({ isLive: false, error: endOf(reason) }),
      (error) => add({ isLive: false, error }),
    );
    return () => stop.abort();
  }, [client, userId, event]);
  // The usage of another user must not be shown, not even for one render.
  if (known === null || known.client !== client || known.userId !== userId || known.event !== event) {
    return { usage: initialUsage, error: null, isLive: false };
  }
  const { usage, error, isLive } = known;
  return { usage: usage ?? initialUsage, error, isLive };
}

const ENDS = {
  aborted: ["The watch was ended", 0],
  erased: ["The user was erased", 404],
  key_revoked: ["The key was revoked", 401],
  replaced: ["Newer streams of this user took the place of this one", 503],
  token_expired: ["The end-user token has expired", 403],
} as const;

/** The end of a watch as an error, with its reason as code. */
function endOf(reason: keyof typeof ENDS): HoldfastError {
  const [message, status] = ENDS[reason];
  return new HoldfastError({ code: reason, status, message });
}

/** Options of the hook of features. */
export interface UseFeaturesOptions extends Pick<UseUsageOptions, "client" | "userId"> {
  /** Shown until the first state arrives, such as the features in a page that a server rendered. */
  readonly initialFeatures?: Readonly<Record<string, Feature>> | null | undefined;
}

/** The current features of a user. */
export interface LiveFeatures extends Omit<LiveUsage, "usage"> {
  /** By key; null until the first state arrives. */
  readonly features: Readonly<Record<string, Feature>> | null;
  /** Whether a feature has the value `true`; false until the first state arrives. */
  readonly isOn: (key: string) => boolean;
}

/**
 * Returns the features of a user, and renders the component again whenever the user's usage or features change.
 *
 * @example
 * ```tsx
 * const client = createClient({ apiKey: "pk_live_...", baseUrl: "https://holdfast.example.com", endUserToken });
 *
 * function Export() {
 *   const { isOn } = useFeatures({ client });
 *   return isOn("export") ? <button type="button">Export</button> : null;
 * }
 * ```
 */
export function useFeatures({ client, userId, initialFeatures = null }: UseFeaturesOptions): LiveFeatures {
  const { usage, error, isLive } = useUsage({ client, userId });
  const features = usage === null ? initialFeatures : usage.features ?? NO_FEATURES;
  const isOn = (key: string) =>
    features !== null && Object.hasOwn(features, key) && features[key]?.value === true;
  return { features, isOn, error, isLive };
}

const NO_FEATURES: Readonly<Record<string, Feature>> = {};
