// Counters of Stripe's messages, over all terms of the process.

/** Messages of one process by result, those that were tried again included. */
export class StripeCounts {
  /** Those that changed something, or had before. */
  handled = 0;
  /** Those that nothing had to be done for. */
  ignored = 0;
  /** Those about something that was paid for and is not granted. */
  unhandled = 0;
  /** Top-ups that the worker of this process has looked at until they were settled, or gave to another owner. */
  topUpsSettled = 0;
  /** Looks at a top-up that has to be looked at again. */
  topUpsLater = 0;
  /** Looks at a top-up that failed: a fault here, or an app without a key. */
  topUpsFaults = 0;
}
