// The clock of test mode, for tests of your own product: a month passes in one call.

import type { CallOptions, Transport } from "./transport.ts";
import type { Moment, TestClockAnswer } from "./wire_types.ts";

/** `client.testClock`; needs a secret key of test mode. */
export class TestClock {
  readonly #transport: Transport;

  /** Called by the client. */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Reads the clock.
   *
   * @example
   * ```ts
   * const tests = createClient({ apiKey: "sk_test_...", baseUrl: "https://holdfast.example.com" });
   * console.log((await tests.testClock.read()).now); // "2026-01-15T12:00:00.000Z"
   * ```
   */
  read(call?: CallOptions): Promise<TestClockAnswer> {
    return this.#transport.send({ method: "GET", path: "/test-clock", access: "secret" }, call);
  }

  /**
   * Moves the app's whole test mode forward. Everything that became due has happened before the answer.
   *
   * @example
   * ```ts
   * const tests = createClient({ apiKey: "sk_test_...", baseUrl: "https://holdfast.example.com" });
   * const { now } = await tests.testClock.move({ advanceSeconds: 86_400 });
   * console.log(now); // "2026-01-16T12:00:00.000Z"
   * ```
   */
  move(
    to: { readonly advanceSeconds: number } | { readonly now: Moment },
    call?: CallOptions,
  ): Promise<TestClockAnswer> {
    return this.#transport.send({ method: "POST", path: "/test-clock", access: "secret", body: to }, call);
  }
}
