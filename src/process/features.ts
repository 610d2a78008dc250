// Features that need a setting: erasure, export, compose, the gateways. Without the setting, their endpoints answer `not_implemented`.

import { NO_STRIPE_KEYS, type StripeKeys } from "./stripe_keys.ts";

/** The dialects of model servers. */
export const SERVER_KINDS = ["openai", "anthropic"] as const;
export type ServerKind = (typeof SERVER_KINDS)[number];

/** A model server. */
export interface ModelServer {
  readonly apiKey: string;
  /** null for the default of the client. */
  readonly baseUrl: string | null;
  /** How long one compose may take; default: COMPOSE_LIMITS. */
  readonly deadlineMs?: number;
  /** How long the gateway reads an answer on after its caller has left, for its report; default: GATEWAY_LIMITS. */
  readonly readOnMs?: number;
}

/** A further model server, which catalogs name in `gateway.upstreams`. */
export interface Upstream {
  readonly name: string;
  readonly kind: ServerKind;
  /** The variable that has its key. */
  readonly keyVariable: string;
  /** null while that variable is unset. */
  readonly server: ModelServer | null;
}

/** Secrets and addresses of optional features; null when one is off. */
export interface Features {
  /** Keys the hashes that replace ids: of pseudonyms, and in consent entries of erased people. */
  readonly privacySecret: string | null;
  /** Signs export links. */
  readonly exportSecret: string | null;
  /** The origin of download links; null for the origin of the request. */
  readonly publicUrl: string | null;
  /** The server of OpenAI's dialect, for compose and the gateway. */
  readonly modelServer: ModelServer | null;
  /** The server of Anthropic's dialect. */
  readonly anthropicServer: ModelServer | null;
  readonly upstreams: readonly Upstream[];
  /** Whether webhook endpoints may have `http` URLs and addresses of private networks. */
  readonly allowsPrivateWebhooks: boolean;
  /** Keys of Stripe, for top-ups. */
  readonly stripe: StripeKeys;
}

/** Every feature off. */
export const NO_FEATURES: Features = {
  privacySecret: null,
  exportSecret: null,
  publicUrl: null,
  modelServer: null,
  anthropicServer: null,
  upstreams: [],
  allowsPrivateWebhooks: false,
  stripe: NO_STRIPE_KEYS,
};
