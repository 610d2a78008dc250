// Streams of server-sent events: answers that continue while something changes. A stream asks its source for the next state
// only when its reader has taken the last one and the shortest time between two states has passed. So a slow reader gets
// the newest state rather than a queue, and does not delay others. One timer serves all resting streams, and one regular
// check covers all of them; an idle stream costs a waiting question and a few objects.

import { STREAM_LIMITS } from "./limits.ts";
import { brokenBody, log, messageOf } from "./log.ts";

/** Why a stream ends in good order, as sent to its reader. */
const STREAM_ENDS = [
  "token_expired",
  "key_revoked",
  "merged",
  "erased",
  "replaced",
  "stopping",
] as const;

export type StreamEnd = (typeof STREAM_ENDS)[number];

/** The answer of a source: a state as one line of text, no change within its time, or the end. */
export type StreamNext =
  | { readonly kind: "state"; readonly text: string }
  | { readonly kind: "same" }
  | { readonly kind: "end"; readonly reason: StreamEnd };

/** Where the states of a stream come from. */
export interface StreamSource {
  /** The next state that differs from the last one. After a fault the stream asks again. */
  next(): Promise<StreamNext>;
  /** Why the stream may not continue, even if its user does not change; null when it may. */
  endsNow(): StreamEnd | null;
}

/** Whose shares of the streams one takes. */
export interface StreamOwner {
  /** The app; its share is `ofAppMax`. */
  readonly app: string;
  /** The user, unique among all apps; its share is `ofUserMax`. */
  readonly user: string;
  /** The end-user token that opened the stream, with a share of `ofTokenMax`; null with a secret key. */
  readonly token: string | null;
  /** What of the user is shown; streams of a user with equal variants share their readings. */
  readonly variant: string;
}

/** Counters of streams; they live as long as the process. */
export class StreamCounts {
  open = 0;
  states = 0;
  /** Streams whose reader disconnected or stopped reading. */
  left = 0;
  readonly ended: Record<StreamEnd, number> = {
    token_expired: 0,
    key_revoked: 0,
    merged: 0,
    erased: 0,
    replaced: 0,
    stopping: 0,
  };
}

const ENCODER = new TextEncoder();
const COMMENT = ENCODER.encode(":\n\n");

/** All open streams of a process. */
export class Streams {
  readonly counts: StreamCounts;
  readonly #open = new Set<Stream>();
  /** Streams that have just sent a state, in that order. */
  readonly #resting = new Set<Stream>();
  /** Streams with a failed source. */
  readonly #troubled = new Set<Stream>();
  /** Streams by app: open ones, and ended ones with a question in flight. */
  readonly #byApp = new Map<string, Set<Stream>>();
  /** The same by user, in the order of opening. */
  readonly #byUser = new Map<string, Set<Stream>>();
  /** Questions in flight of streams that have ended. */
  #orphans = 0;
  #isEnding = false;
  #restTimer: ReturnType<typeof setTimeout> | null = null;
  #lookTimer: ReturnType<typeof setInterval> | null = null;

  constructor(counts: StreamCounts = new StreamCounts()) {
    this.counts = counts;
  }

  /** Whether the process has room for another stream. */
  get hasRoom(): boolean {
    return this.#isWithin(STREAM_LIMITS.openMax, this.#open.size, this.#orphans);
  }

  /** Whether an app may open another stream. */
  hasRoomFor(app: string): boolean {
    return this.#isWithin(STREAM_LIMITS.ofAppMax, ...tallied(this.#byApp.get(app)));
  }

  /**
   * Whether a user may open another stream. Open ones give way to it, but not questions of streams that have ended: they
   * wait until they are answered.
   */
  hasRoomForUser(user: string): boolean {
    const [, orphans] = tallied(this.#byUser.get(user));
    return orphans < STREAM_LIMITS.ofUserMax;
  }

  /** The streams of the app that has most. */
  get ofAppMost(): number {
    return Math.max(0, ...this.#byApp.values().map((streams) => tallied(streams)[0]));
  }

  /** Questions of ended streams take as much room again. */
  #isWithin(max: number, open: number, orphans: number): boolean {
    return open < max && open + orphans < max * 2;
  }

  /** Whether all streams were ended and no new one may begin. */
  get isEnding(): boolean {
    return this.#isEnding;
  }

  /**
   * Opens a stream. The oldest ones of its token and its user end with `replaced` where it would be one too many, or would
   * show one variant too many of the user.
   *
   * @param event the name of the event that carries a state
   * @param first the first state
   */
  open(
    event: string,
    first: string,
    source: StreamSource,
    owner: StreamOwner,
  ): ReadableStream<Uint8Array> {
    this.#makeRoom(owner);
    const stream = new Stream(this, event, source, owner);
    const body = new ReadableStream<Uint8Array>(stream, { highWaterMark: 1 });
    this.#open.add(stream);
    addTo(this.#byApp, owner.app, stream);
    addTo(this.#byUser, owner.user, stream);
    this.counts.open = this.#open.size;
    this.#lookTimer ??= setInterval(() => this.#look(), STREAM_LIMITS.lookEveryMs);
    stream.send(first);
    if (this.#isEnding) stream.end("stopping");
    return body;
  }

  /** Ends every stream; a later one ends at once. */
  endAll(): void {
    this.#isEnding = true;
    for (const stream of this.#open) stream.end("stopping");
  }

  /** Lets a stream rest until it may send another state. */
  rest(stream: Stream): void {
    this.#resting.add(stream);
    this.#restTimer ??= setTimeout(() => this.#wake(), STREAM_LIMITS.stateEveryMs);
  }

  trouble(stream: Stream): void {
    this.#troubled.add(stream);
  }

  /** Ends the oldest streams of a user until another one is within the shares. */
  #makeRoom({ user, token, variant }: StreamOwner): void {
    const { ofUserMax, ofTokenMax, variantsMax } = STREAM_LIMITS;
    const open = [...this.#byUser.get(user) ?? []].filter(({ isOpen }) => isOpen);
    const others = () => open.filter(({ owner }) => owner.variant !== variant);
    const replaceFirst = ([oldest]: readonly Stream[]) => {
      if (oldest === undefined) return;
      open.splice(open.indexOf(oldest), 1);
      oldest.end("replaced");
    };
    const ofToken = () => token === null ? [] : open.filter(({ owner }) => owner.token === token);
    while (ofToken().length >= ofTokenMax) replaceFirst(ofToken());
    while (open.length >= ofUserMax) replaceFirst(open);
    while (new Set(others().map(({ owner }) => owner.variant)).size >= variantsMax) {
      const given = others()[0]?.owner.variant;
      for (const one of others()) if (one.owner.variant === given) replaceFirst([one]);
    }
  }

  /** Forgets an ended stream without a question in flight. */
  forget(stream: Stream): void {
    const { app, user } = stream.owner;
    removeFrom(this.#byApp, app, stream);
    removeFrom(this.#byUser, user, stream);
  }

  /** Takes an ended stream from the open ones. */
  remove(stream: Stream): void {
    if (!this.#open.delete(stream)) return;
    this.counts.open = this.#open.size;
    this.#resting.delete(stream);
    this.#troubled.delete(stream);
    if (this.#open.size > 0) return;
    if (this.#lookTimer !== null) clearInterval(this.#lookTimer);
    if (this.#restTimer !== null) clearTimeout(this.#restTimer);
    this.#lookTimer = this.#restTimer = null;
  }

  /** Counts a question in flight whose stream ends; call the returned function when it is answered. */
  orphan(by: 1 | -1): void {
    this.#orphans += by;
  }

  #wake(): void {
    this.#restTimer = null;
    const now = performance.now();
    for (const stream of this.#resting) {
      const leftMs = stream.mayAskAt - now;
      if (leftMs > 0) {
        this.#restTimer = setTimeout(() => this.#wake(), leftMs);
        return;
      }
      this.#resting.delete(stream);
      stream.ask();
    }
  }

  #look(): void {
    const now = performance.now();
    for (const stream of this.#open) stream.look(now);
    for (const stream of this.#troubled) {
      if (stream.mayAskAt > now) continue;
      this.#troubled.delete(stream);
      stream.ask();
    }
  }
}

function addTo(shares: Map<string, Set<Stream>>, name: string, stream: Stream): void {
  const share = shares.get(name);
  if (share === undefined) shares.set(name, new Set([stream]));
  else share.add(stream);
}

function removeFrom(shares: Map<string, Set<Stream>>, name: string, stream: Stream): void {
  const share = shares.get(name);
  if (share?.delete(stream) === true && share.size === 0) shares.delete(name);
}

/** Counts a share: open streams, then ended ones with a question in flight. */
function tallied(share: Iterable<Stream> = []): [open: number, orphans: number] {
  let open = 0;
  let all = 0;
  for (const { isOpen } of share) {
    all += 1;
    if (isOpen) open += 1;
  }
  return [open, all - open];
}

/** One open stream; the source of its body. */
class Stream implements UnderlyingDefaultSource<Uint8Array> {
  /** The earliest time of the next question; 0 before the first state was sent. */
  mayAskAt = Infinity;
  isOpen = true;
  readonly owner: StreamOwner;
  readonly #streams: Streams;
  readonly #event: string;
  readonly #source: StreamSource;
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  #isAsking = false;
  /** When it last sent anything, comments included. */
  #commentedAt = performance.now();
  /** When its reader was last seen to have taken everything. */
  #readAt = performance.now();
  /** Since when the source has failed; 0 while it answers. */
  #failingSince = 0;

  constructor(streams: Streams, event: string, source: StreamSource, owner: StreamOwner) {
    this.owner = owner;
    this.#streams = streams;
    this.#event = event;
    this.#source = source;
  }

  start(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#controller = controller;
  }

  /** The reader has taken everything that was sent. */
  pull(): void {
    this.ask();
  }

  /** The reader has left. */
  cancel(): void {
    if (!this.isOpen) return;
    this.#streams.counts.left += 1;
    this.#close();
  }

  /** Asks for the next state, when the reader can take one. */
  ask(): void {
    if (!this.isOpen || this.#isAsking || !this.#hasRoom || performance.now() < this.mayAskAt) return;
    this.#isAsking = true;
    this.#source.next().then((next) => this.#answered(next), (error) => this.#failed(error));
  }

  send(text: string): void {
    // Before `enqueue`, which pulls at once where the reader waits.
    this.mayAskAt = performance.now() + STREAM_LIMITS.stateEveryMs;
    this.#controller.enqueue(ENCODER.encode(`event: ${this.#event}\ndata: ${text}\n\n`));
    this.#streams.counts.states += 1;
    this.#streams.rest(this);
  }

  /** Sends the reason to the reader, and ends. */
  end(reason: StreamEnd): void {
    if (!this.isOpen) return;
    this.#controller.enqueue(ENCODER.encode(`event: end\ndata: ${JSON.stringify({ reason })}\n\n`));
    this.#controller.close();
    this.#streams.counts.ended[reason] += 1;
    this.#close();
  }

  /** Checks for reasons to end the stream, and sends a comment when it was silent for long. */
  look(now: number): void {
    const reason = this.#source.endsNow();
    if (reason !== null) return this.end(reason);
    if (this.#hasRoom) {
      this.#readAt = now;
      if (now - this.#commentedAt < STREAM_LIMITS.commentEveryMs) return;
      this.#commentedAt = now;
      this.#controller.enqueue(COMMENT);
    } else if (now - this.#readAt >= STREAM_LIMITS.readerGoneMs) {
      this.#controller.error(brokenBody("A stream was ended: its reader takes nothing"));
      this.cancel();
    }
  }

  get #hasRoom(): boolean {
    return (this.#controller.desiredSize ?? 0) > 0;
  }

  #answered(next: StreamNext): void {
    if (!this.#isHeard()) return;
    this.#failingSince = 0;
    if (next.kind === "end") return this.end(next.reason);
    const reason = this.#source.endsNow();
    if (reason !== null) return this.end(reason);
    if (next.kind === "state") this.send(next.text);
    else this.ask();
  }

  #failed(error: unknown): void {
    if (!this.#isHeard()) return;
    const now = performance.now();
    if (this.#failingSince === 0) {
      this.#failingSince = now;
      log("debug", "A stream has no answer from its source", { error: messageOf(error) });
    }
    if (now - this.#failingSince >= STREAM_LIMITS.ownerGoneMs) return this.end("stopping");
    this.mayAskAt = now + STREAM_LIMITS.askAgainMs;
    this.#streams.trouble(this);
  }

  /** Whether the stream still waits for this answer. */
  #isHeard(): boolean {
    this.#isAsking = false;
    if (!this.isOpen) {
      this.#streams.orphan(-1);
      this.#streams.forget(this);
    }
    return this.isOpen;
  }

  #close(): void {
    this.isOpen = false;
    if (this.#isAsking) this.#streams.orphan(1);
    else this.#streams.forget(this);
    this.#streams.remove(this);
  }
}
