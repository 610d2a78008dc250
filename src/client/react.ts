// Live usage in a React page: `holdfast-client/react`. Components that show the same share one stream. It needs React 18 or
// later: the package imports "react" in the version of the page.

// @ts-types="npm:@types/react@19.3.0"
import { useCallback, useMemo, useSyncExternalStore } from "npm:react@19.3.1";
import type { HoldfastClient } from "./client.ts";
import { HoldfastError } from "./errors.ts";
import type { WatchEnd, WatchOptions } from "./usage_calls.ts";
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
  const subscribe = useCallback(
    (onChange: () => void) => watchFor(client, userId, event).subscribe(onChange),
    [client, userId, event],
  );
  const read = () => WATCHES.get(client)?.get(keyOf(userId, event))?.live ?? UNKNOWN;
  const live = useSyncExternalStore(subscribe, read, () => UNKNOWN);
  const initial = useInitial(initialUsage, { client, userId, event });
  return live.usage === null && initial !== null ? { ...live, usage: initial } : live;
}

/** A given first state. It is of the user with whom it was given: another one must not be shown it. */
function useInitial<State>(given: State | null, { client, userId, event }: UseUsageOptions): State | null {
  const shown = useMemo(() => ({}), [client, userId, event]);
  const givenFor = useMemo(() => shown, [given]);
  return givenFor === shown ? given : null;
}

const UNKNOWN: LiveUsage = { usage: null, error: null, isLive: false };

/** The watches of each client, by what they show. */
const WATCHES = new WeakMap<object, Map<string, SharedWatch>>();

function keyOf(userId: string | undefined, event: string | undefined): string {
  return JSON.stringify([userId, event]);
}

/** The watch that all components share which show the same: the service keeps few streams for one token. */
function watchFor(client: UseUsageOptions["client"], userId?: string, event?: string): SharedWatch {
  const key = keyOf(userId, event);
  const ofClient = WATCHES.get(client) ?? new Map<string, SharedWatch>();
  WATCHES.set(client, ofClient);
  let watch = ofClient.get(key);
  if (watch === undefined) {
    const start: StartWatch = (onUsage, options) =>
      client.usage.watch(userId, onUsage, { ...options, event });
    const made = watch = new SharedWatch(start, () => {
      if (ofClient.get(key) === made) ofClient.delete(key);
    });
    ofClient.set(key, made);
  }
  return watch;
}

type Page = { readonly document?: EventTarget & { readonly visibilityState: string } };
type StartWatch = (
  onUsage: (usage: Usage) => void,
  options: Pick<WatchOptions, "signal" | "onConnection">,
) => Promise<WatchEnd>;

/** A watch with the components that show it. */
class SharedWatch {
  live: LiveUsage = UNKNOWN;
  readonly #start: StartWatch;
  readonly #onUnused: () => void;
  readonly #listeners = new Set<() => void>();
  /** Null while nothing is watched. */
  #stop: AbortController | null = null;

  constructor(start: StartWatch, onUnused: () => void) {
    this.#start = start;
    this.#onUnused = onUnused;
  }

  /** Adds a component; returns what removes it. */
  subscribe(onChange: () => void): () => void {
    // React may subscribe the same function twice.
    const listener = () => onChange();
    this.#listeners.add(listener);
    if (this.#stop === null) this.#watch();
    return () => {
      this.#listeners.delete(listener);
      // Another component may take over in the same update.
      if (this.#listeners.size === 0) setTimeout(() => this.#endUnused());
    };
  }

  #endUnused(): void {
    if (this.#listeners.size > 0) return;
    this.#stop?.abort();
    this.#stop = null;
    (globalThis as Page).document?.removeEventListener("visibilitychange", this.#onShown);
    this.#onUnused();
  }

  #watch(): void {
    const stop = this.#stop = new AbortController();
    const show = (members: Partial<LiveUsage>) => {
      if (stop.signal.aborted) return;
      this.live = { ...this.live, ...members };
      for (const listener of this.#listeners) listener();
    };
    const end = (error: HoldfastError) => {
      if (this.#stop === stop) this.#stop = null;
      show({ isLive: false, error });
    };
    this.#start((usage) => show({ usage, error: null, isLive: true }), {
      signal: stop.signal,
      onConnection: ({ isLive, error }) => show(isLive ? { error: null } : { isLive, error }),
    }).then(({ reason }) => {
      end(endOf(reason));
      if (reason !== "replaced" || stop.signal.aborted) return;
      (globalThis as Page).document?.addEventListener("visibilitychange", this.#onShown);
    }, end);
  }

  /** Watches again after newer streams took the place of this one, when the page is shown again. */
  readonly #onShown = () => {
    const { document } = globalThis as Page;
    if (document?.visibilityState !== "visible") return;
    document.removeEventListener("visibilitychange", this.#onShown);
    if (this.#stop === null) this.#watch();
  };
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
  const initial = useInitial(initialFeatures, { client, userId });
  const features = usage === null ? initial : usage.features ?? NO_FEATURES;
  const isOn = (key: string) =>
    features !== null && Object.hasOwn(features, key) && features[key]?.value === true;
  return { features, isOn, error, isLive };
}

const NO_FEATURES: Readonly<Record<string, Feature>> = {};
