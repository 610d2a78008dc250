// Counters of Stripe's messages, over all terms of the process.

/** Messages of one process by result, those that were tried again included. */
export class StripeCounts {
  /** Those that changed something, or had before. */
  handled = 0;
  /** Those that nothing had to be done for. */
  ignored = 0;
  /** Those about something that was paid for and is not granted. */
  unhandled = 0;
}
