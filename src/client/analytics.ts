// Analytics people: what they did, who they are, what they agreed to, their export and their erasure. Specification,
// "Privacy"; section 9 of the decisions.

import type { MeteredEvent } from "./events.ts";
import type { Mode, Moment } from "./shapes.ts";
import type { CallOptions, Transport } from "./transport.ts";

/** Plain values by name, up to 16 KiB. */
export type Properties = Readonly<Record<string, string | number | boolean | null>>;

/** What somebody did. */
export interface CaptureInput {
  /** Left out: nobody's; then nothing links it to a person. */
  readonly distinctId?: string | undefined;
  readonly event: string;
  readonly properties?: Properties | undefined;
  /** Now by default; up to 24 hours ahead. */
  readonly timestamp?: Moment | undefined;
}

/** The answer of a capture, whatever came of it. */
export interface CaptureAnswer {
  readonly accepted: true;
}

/** Who an id is. */
export interface IdentifyInput {
  readonly distinctId: string;
  /** Replace what was known. */
  readonly properties?: Properties | undefined;
  /** Kept as they were first written. */
  readonly propertiesOnce?: Properties | undefined;
  /** An anonymous session that turned out to be this person; never identified before. */
  readonly mergeAnonymousId?: string | undefined;
  /** Needed for `mergeAnonymousId`. */
  readonly consentGiven?: boolean | undefined;
}

/** The answer of an identify. */
export interface IdentifyAnswer {
  readonly personId: string;
  readonly merged: boolean;
}

/** Two ids of one person; metering is not touched. */
export interface PersonAliasInput {
  readonly distinctId: string;
  readonly alias: string;
  /** Needed where either is an `anon_` session. */
  readonly consentGiven?: boolean | undefined;
}

/** The answer of an alias of people. */
export interface PersonAliasAnswer {
  readonly personId: string;
}

/** What one can opt out of. */
export type ConsentScope = "analytics" | "ai_personalization" | "prompt_logging";

/** A link to everything about a person. */
export interface PersonExportLink {
  /** Needs no key: whoever has it can read it. */
  readonly downloadUrl: string;
  readonly expiresAt: string;
  readonly format: "json";
}

/** Everything about a person. */
export interface PersonExport {
  readonly format: "json";
  readonly exportedAt: string;
  readonly appId: string;
  readonly mode: Mode;
  readonly distinctId: string;
  readonly person: {
    readonly personId: string;
    readonly distinctIds: readonly string[];
    readonly properties: Properties;
    readonly identifiedAt: string | null;
    readonly createdAt: string;
  } | null;
  readonly events: {
    readonly analytics: readonly {
      readonly id: string;
      readonly event: string;
      readonly properties: Properties;
      readonly timestamp: string;
    }[];
    readonly metering: readonly MeteredEvent[];
  };
  readonly consentLog: readonly {
    readonly id: string;
    readonly action: "opt_out" | "opt_in";
    readonly scope: ConsentScope | "all";
    readonly consentGiven: boolean;
    readonly createdAt: string;
  }[];
}

/** How far an erasure is. */
export interface DeletionStatus {
  readonly status: "queued" | "in_progress" | "completed" | "failed";
  readonly requestedAt: string;
  readonly startedAt: string | null;
  readonly completedAt: string | null;
  readonly errorMessage: string | null;
}

/** `client.analytics`. */
export class Analytics {
  readonly #transport: Transport;

  /** A client makes it. */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Records what somebody did. A public key will do.
   *
   * @example
   * ```ts
   * await client.analytics.capture({ distinctId: "user_1", event: "gallery.opened", properties: { tab: "new" } });
   * ```
   */
  capture(input: CaptureInput, call?: CallOptions): Promise<CaptureAnswer> {
    return this.#transport.send({ method: "POST", path: "/capture", access: "any", body: input }, call);
  }

  /**
   * Says who an id is. A public key will do.
   *
   * @example
   * ```ts
   * const { merged } = await client.analytics.identify({
   *   distinctId: "user_1",
   *   properties: { plan: "pro" },
   *   propertiesOnce: { signedUpWith: "mail" },
   *   mergeAnonymousId: "anon_7",
   *   consentGiven: true,
   * });
   * console.log(merged); // true
   * ```
   */
  identify(input: IdentifyInput, call?: CallOptions): Promise<IdentifyAnswer> {
    return this.#transport.send({ method: "POST", path: "/identify", access: "any", body: input }, call);
  }

  /**
   * Makes one person of two ids. To make one metered user of them, too, see `customers.alias`.
   *
   * @example
   * ```ts
   * const { personId } = await client.analytics.alias({ distinctId: "phone_1", alias: "user_1" });
   * console.log(personId.startsWith("pid_")); // true
   * ```
   */
  alias(input: PersonAliasInput, call?: CallOptions): Promise<PersonAliasAnswer> {
    return this.#write("/alias", input, call);
  }

  /**
   * Records that a person opted out. `all` stands for analytics and personalization; opting out of prompt logging is
   * a call of its own.
   *
   * @example
   * ```ts
   * await client.analytics.optOut("user_1", "ai_personalization");
   * console.log(await client.analytics.isOptedOut("user_1", "ai_personalization")); // true
   * ```
   */
  async optOut(distinctId: string, scope?: ConsentScope | "all", call?: CallOptions): Promise<void> {
    await this.#write("/opt-out", { distinctId, scope }, call);
  }

  /**
   * Records that a person opted in again.
   *
   * @example
   * ```ts
   * await client.analytics.optOut("user_1");
   * await client.analytics.optIn("user_1");
   * console.log(await client.analytics.isOptedOut("user_1")); // false
   * ```
   */
  async optIn(distinctId: string, scope?: ConsentScope | "all", call?: CallOptions): Promise<void> {
    await this.#write("/opt-in", { distinctId, scope }, call);
  }

  /**
   * Whether a person has opted out of a scope; of analytics by default.
   *
   * @example
   * ```ts
   * console.log(await client.analytics.isOptedOut("user_1")); // false
   * ```
   */
  async isOptedOut(distinctId: string, scope?: ConsentScope, call?: CallOptions): Promise<boolean> {
    const query = { distinctId, scope };
    const { optedOut } = await this.#transport.send<{ optedOut: boolean }>(
      { method: "GET", path: "/opted-out", access: "secret", query },
      call,
    );
    return optedOut;
  }

  /**
   * A link to everything about a person, valid for 24 hours.
   *
   * @example
   * ```ts
   * const { downloadUrl } = await client.analytics.exportPerson("user_1");
   * const document = await client.analytics.downloadExport(downloadUrl);
   * console.log(document.distinctId); // "user_1"
   * ```
   */
  exportPerson(distinctId: string, call?: CallOptions): Promise<PersonExportLink> {
    return this.#write("/export-person", { distinctId }, call);
  }

  /**
   * The document behind a link of `exportPerson`. No key is sent.
   *
   * @example
   * ```ts
   * await client.track("user_1", "image.render");
   * const { downloadUrl } = await client.analytics.exportPerson("user_1");
   * const { events } = await client.analytics.downloadExport(downloadUrl);
   * console.log(events.metering[0]?.eventType); // "image.render"
   * ```
   */
  downloadExport(downloadUrl: string, call?: CallOptions): Promise<PersonExport> {
    return this.#transport.download(downloadUrl, call);
  }

  /**
   * Erases everything of a person, soon; `deletionStatus` says when it is done.
   *
   * @example
   * ```ts
   * const { jobId } = await client.analytics.deletePerson("user_1");
   * const { requestedAt } = await client.analytics.deletionStatus(jobId);
   * console.log(requestedAt); // "2026-01-15T12:00:00.000Z"
   * ```
   */
  deletePerson(distinctId: string, call?: CallOptions): Promise<{ readonly jobId: string }> {
    return this.#write("/delete-person", { distinctId }, call);
  }

  /**
   * How far an erasure is.
   *
   * @example
   * ```ts
   * const { jobId } = await client.analytics.deletePerson("user_1");
   * const { errorMessage } = await client.analytics.deletionStatus(jobId);
   * console.log(errorMessage); // null
   * ```
   */
  deletionStatus(jobId: string, call?: CallOptions): Promise<DeletionStatus> {
    return this.#transport.send(
      { method: "GET", path: "/deletion-status", access: "secret", query: { jobId } },
      call,
    );
  }

  #write<Answer>(path: string, body: object, call: CallOptions | undefined): Promise<Answer> {
    return this.#transport.send({ method: "POST", path, access: "secret", body }, call);
  }
}
