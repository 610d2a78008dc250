// The limits of the connections between two processes.

/** Bounds of the channel between two processes, each for one channel, so that a slow peer does not affect others. */
export const CHANNEL_LIMITS = {
  /** Payload of one frame. */
  frameBytesMax: 16 * 1024 * 1024,
  /** Payload of a frame before both sides are authenticated. */
  helloBytesMax: 16 * 1024,
  /** Time from connecting until both sides are authenticated. */
  helloMs: 2_000,
  /** Connections that are not authenticated yet; one more closes the oldest. */
  unprovedMax: 64,
  /** Authenticated connections of processes that this one does not know yet. */
  unknownMax: 64,
  /** How long a frame collects calls and answers when the previous frame has only just left. */
  gatherMs: 1,
  /** The interval of pings on a channel ... */
  pingEveryMs: 500,
  /** ... which is closed after this many intervals without a byte from the peer. */
  silentPingsMax: 4,
  /** The first pause before another dial, which doubles ... */
  redialMs: 50,
  /** ... up to this one. After a channel that lived this long, the first pause is used again. */
  redialMsMax: 1_000,
  /** Calls waiting for their answer. */
  callsMax: 50_000,
  /** Characters of the calls waiting for their answer. */
  callCharsMax: 64 * 1024 * 1024,
  /** Requests waiting for the end of their answer. */
  requestsMax: 1_000,
  /** Bytes of the bodies of these requests. */
  requestBytesMax: 64 * 1024 * 1024,
  /** Bytes waiting to be written. */
  waitingBytesMax: 64 * 1024 * 1024,
  /** Bytes of one streamed answer that are in flight or not read yet. */
  streamBytesMax: 256 * 1024,
  /** Bytes of one piece of a streamed answer. */
  chunkBytesMax: 64 * 1024,
  /** Bytes of all streamed answers waiting to be written, above which their sources are not read. */
  streamsWaitingBytesMax: 1024 * 1024,
  /** Characters of calls or answers after which another frame begins. */
  batchChars: 1024 * 1024,
  /** Bytes written to the connection at a time. */
  writeBytesMax: 256 * 1024,
  /** Bytes of a connection's first read ... */
  firstReadBytes: 4 * 1024,
  /** ... and of later ones, when a peer sends much. */
  readBytes: 64 * 1024,
  /** Size of the buffer for partial frames that is reused. */
  keptBytesMax: 256 * 1024,
  /** Time for answers in flight when this process closes its channels. */
  leaveMs: 1_000,
} as const;
