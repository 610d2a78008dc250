// Counters of Stripe's messages, over all terms of the process.

/** Messages of one process by result, those that were tried again included. */
export class StripeCounts {
  /** Messages that changed something, now or when they first arrived. */
  handled = 0;
  /** Messages that need no change. */
  ignored = 0;
  /** Messages about something that was paid for and is not granted. */
  unhandled = 0;
  /** Top-ups that the worker of this process has looked at until they were settled, or gave to another owner. */
  topUpsSettled = 0;
  /** Looks at a top-up that has to be looked at again. */
  topUpsLater = 0;
  /** Looks at a top-up that failed: a fault here, or an app without a key. */
  topUpsFaults = 0;
}
