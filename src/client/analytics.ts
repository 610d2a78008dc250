// Analytics of people: events, properties, consent, export and erasure.

import { CallGroup } from "./call_group.ts";
import type { CallOptions } from "./transport.ts";
import type {
  CaptureAnswer,
  CaptureInput,
  ConsentScope,
  DeletionStatus,
  IdentifyAnswer,
  IdentifyInput,
  PersonAliasAnswer,
  PersonAliasInput,
  PersonExport,
  PersonExportLink,
} from "./wire_types.ts";

/** `client.analytics`. */
export class Analytics extends CallGroup {
  /**
   * Records something that a person did. A public key is enough.
   *
   * @example
   * ```ts
   * await client.analytics.capture({ distinctId: "user_1", event: "gallery.opened", properties: { tab: "new" } });
   * ```
   */
  capture(input: CaptureInput, call?: CallOptions): Promise<CaptureAnswer> {
    return this.send("POST", "/capture", "any", call, input);
  }

  /**
   * Records what you know about the person behind an id. A public key is enough.
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
    return this.send("POST", "/identify", "any", call, input);
  }

  /**
   * Makes one person of two ids. Metering does not change: `customers.alias` makes one metered user of two ids.
   *
   * @example
   * ```ts
   * const { personId } = await client.analytics.alias({ distinctId: "phone_1", alias: "user_1" });
   * console.log(personId.startsWith("pid_")); // true
   * ```
   */
  alias(input: PersonAliasInput, call?: CallOptions): Promise<PersonAliasAnswer> {
    return this.#post("/alias", input, call);
  }

  /**
   * Records that a person opted out; of `all` by default, which is analytics and AI personalization. Opting out of
   * prompt logging needs its own call.
   *
   * @example
   * ```ts
   * await client.analytics.optOut("user_1", "ai_personalization");
   * console.log(await client.analytics.isOptedOut("user_1", "ai_personalization")); // true
   * ```
   */
  async optOut(distinctId: string, scope?: ConsentScope | "all", call?: CallOptions): Promise<void> {
    await this.#post("/opt-out", { distinctId, scope }, call);
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
    await this.#post("/opt-in", { distinctId, scope }, call);
  }

  /**
   * Returns whether a person has opted out of a scope; of analytics by default.
   *
   * @example
   * ```ts
   * console.log(await client.analytics.isOptedOut("user_1")); // false
   * ```
   */
  async isOptedOut(distinctId: string, scope?: ConsentScope, call?: CallOptions): Promise<boolean> {
    const query = { distinctId, scope };
    const { optedOut } = await this.send<{ optedOut: boolean }>("GET", "/opted-out", "secret", call, query);
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
    return this.#post("/export-person", { distinctId }, call);
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
    return this.transport.download(downloadUrl, call);
  }

  /**
   * Starts the erasure of everything about a person; `deletionStatus` returns when it is done.
   *
   * @example
   * ```ts
   * const { jobId } = await client.analytics.deletePerson("user_1");
   * const { requestedAt } = await client.analytics.deletionStatus(jobId);
   * console.log(requestedAt); // "2026-01-15T12:00:00.000Z"
   * ```
   */
  deletePerson(distinctId: string, call?: CallOptions): Promise<{ readonly jobId: string }> {
    return this.#post("/delete-person", { distinctId }, call);
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
    return this.send("GET", "/deletion-status", "secret", call, { jobId });
  }

  #post<Answer>(path: string, body: object, call: CallOptions | undefined): Promise<Answer> {
    return this.send("POST", path, "secret", call, body);
  }
}
