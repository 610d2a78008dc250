// The clock of test mode, for tests of your own product: a month passes in one call.

import { CallGroup } from "./call_group.ts";
import type { CallOptions } from "./transport.ts";
import type { Moment, TestClockAnswer } from "./wire_types.ts";

/** `client.testClock`; needs a secret key of test mode. */
export class TestClock extends CallGroup {
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
    return this.send("GET", "/test-clock", "secret", call);
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
    return this.send("POST", "/test-clock", "secret", call, to);
  }
}
