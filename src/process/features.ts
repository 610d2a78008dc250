// Features that need a setting: erasure, export, compose. Where the setting is missing, their endpoints answer
// `not_implemented`. Section 3 of the decisions.

/** An OpenAI-compatible model server. */
export interface ModelServer {
  readonly apiKey: string;
  /** null for the client's default. */
  readonly baseUrl: string | null;
  /** How long one compose may take; default: COMPOSE_LIMITS. */
  readonly deadlineMs?: number;
}

/** Secrets and addresses of optional features; null where one is off. */
export interface Features {
  /** Keys the hashes that stand in for ids: pseudonyms, kept consent entries. */
  readonly privacySecret: string | null;
  /** Signs export links. */
  readonly exportSecret: string | null;
  /** The origin of download links; null for that of the request. */
  readonly publicUrl: string | null;
  readonly modelServer: ModelServer | null;
  /** Whether webhooks may have `http` URLs and addresses of private networks. */
  readonly allowsPrivateWebhooks: boolean;
}

/** Every feature off. */
export const NO_FEATURES: Features = {
  privacySecret: null,
  exportSecret: null,
  publicUrl: null,
  modelServer: null,
  allowsPrivateWebhooks: false,
};
