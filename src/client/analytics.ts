// Analytics: what people did, who they are, what they consented to, their export and their erasure. Specification,
// "Privacy"; section 9 of the decisions.

import type { MeteredEvent } from "./events.ts";
import type { Mode, Moment } from "./shapes.ts";
import type { CallOptions, Transport } from "./transport.ts";

/** Properties by name, up to 16 KiB as JSON. */
export type Properties = Readonly<Record<string, string | number | boolean | null>>;

/** Something that a person did. */
export interface CaptureInput {
  /** Leave it out for an anonymous event, which is linked to no person. */
  readonly distinctId?: string | undefined;
  readonly event: string;
  readonly properties?: Properties | undefined;
  /** Now by default; at most 24 hours in the future. */
  readonly timestamp?: Moment | undefined;
}

/** The answer to a capture. It is the same for people who opted out, so that it reveals nothing. */
export interface CaptureAnswer {
  readonly accepted: true;
}

/** What you know of the person behind an id. */
export interface IdentifyInput {
  readonly distinctId: string;
  /** Overwrite properties of the same name. */
  readonly properties?: Properties | undefined;
  /** Written only where the person has no property of the name yet. */
  readonly propertiesOnce?: Properties | undefined;
  /** The id of an anonymous session that turned out to be this person, never identified before. */
  readonly mergeAnonymousId?: string | undefined;
  /** Whether the person agreed to that; needed with `mergeAnonymousId`. */
  readonly consentGiven?: boolean | undefined;
}

/** The answer to an identify. */
export interface IdentifyAnswer {
  readonly personId: string;
  readonly merged: boolean;
}

/** Two ids of one person. */
export interface PersonAliasInput {
  readonly distinctId: string;
  readonly alias: string;
  /** Whether the person agreed; needed where either id begins with `anon_`. */
  readonly consentGiven?: boolean | undefined;
}

/** The answer to an alias of two people. */
export interface PersonAliasAnswer {
  readonly personId: string;
}

/** What a person can opt out of. */
export type ConsentScope = "analytics" | "ai_personalization" | "prompt_logging";

/** A link to the export of a person. */
export interface PersonExportLink {
  /** Whoever has this address can read the export, without a key. */
  readonly downloadUrl: string;
  readonly expiresAt: string;
  readonly format: "json";
}

/** Everything known about a person. */
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

/** The state of an erasure. */
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

  /** Called by the client. */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Records something that a person did. A public key is enough.
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
   * Records what you know of the person behind an id. A public key is enough.
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
   * Makes one person of two ids. Metering stays as it is: to make one metered user of them, see `customers.alias`.
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
   * Records that a person opted out; of `all` by default, which is analytics and AI personalization. Opting out of
   * prompt logging is a call of its own.
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
   * Records that a person opted in again; to `all` by default.
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
   * Says whether a person has opted out of a scope; of analytics by default.
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
   * Makes a link to everything known about a person, valid for 24 hours.
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
   * Reads the document behind a link of `exportPerson`, without sending a key.
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
   * Starts the erasure of everything about a person; `deletionStatus` says when it is done.
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
   * Reads the state of an erasure.
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
