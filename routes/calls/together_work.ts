// The calls of one request while they are decided, and their results.

import type { BatchRoom } from "../../actors/batch_room.ts";
import type { Directory } from "../../actors/directory.ts";
import type { Doors } from "../../actors/doors.ts";
import type { Drain } from "../../actors/drain.ts";
import type { Batch } from "../../actors/gate.ts";
import type { Flight, Idempotency, IdempotentCall } from "../../actors/idempotency.ts";
import type { Term } from "../../actors/term.ts";
import type { CommandName } from "../../src/domain/command.ts";
import type { Metadata } from "../../src/domain/values/match.ts";
import { RUNTIME_LIMITS } from "../../src/process/limits.ts";
import type { CallDefinition } from "../contract/definition.ts";
import { failure, isKept, write, type WrittenAnswer } from "../http/answer.ts";
import type { EndpointRequest } from "../http/endpoint_types.ts";
import { STATUS } from "../http/errors.ts";
import type { Members } from "../http/json_body.ts";
import type { CountingWorld } from "../http/rate_limit.ts";
import { refusalOf } from "../http/respond.ts";
import type { TurnWorld } from "../http/turn.ts";
import type { Asked } from "./metering.ts";

/** What calls in one request need of the running service. */
export interface TogetherWorld extends TurnWorld, CountingWorld {
  readonly term: TurnWorld["term"] & Pick<Term, "keepAnswer"> & {
    readonly directory: Pick<Directory, "actorOf" | "actorByKey" | "inMemory" | "inMemoryByKey">;
    readonly batchRoom: BatchRoom;
    readonly doors: Pick<Doors, "remain" | "leave">;
    readonly drain: Pick<Drain, "roomForMore">;
    readonly idempotency: Pick<
      Idempotency,
      "begin" | "end" | "keyPrefixOf" | "lookUp" | "outcomeNow" | "runBegun"
    >;
  };
}

export type TogetherRequest<World extends TogetherWorld = TogetherWorld> = EndpointRequest<World, unknown>;

/** What a call may be. */
export interface Kind {
  readonly definition: CallDefinition;
  /** What a checked input asks. */
  readonly ask: (input: unknown) => Asked<CommandName, unknown>;
}

/** Makes a kind of a call's definition and what it asks. */
export function kindOf(definition: CallDefinition, ask: (input: never) => unknown): Kind {
  return { definition, ask: ask as Kind["ask"] };
}

/** A call as its place has it, before its input is checked. */
interface SentCall {
  readonly kind: Kind;
  readonly members: Members;
  /** Its key and what it is compared by; null for a call without a key. */
  readonly call: IdempotentCall | null;
}

/** How the calls of a request are read and answered. */
export interface Form<World extends TogetherWorld = TogetherWorld> {
  /** Returns the call at a place; throws on one that is invalid. */
  readonly read: (request: TogetherRequest<World>, sent: unknown, place: number) => SentCall;
  /**
   * Returns the JSON text of a result.
   *
   * @param kind null for a call that could not be read
   * @param thrown what the call threw, if it did
   */
  readonly textOf: (
    request: TogetherRequest<World>,
    kind: Kind | null,
    answer: WrittenAnswer,
    thrown?: unknown,
  ) => string;
  /** How long a call with a key may take; it is then refused as `unavailable`, and finished all the same. Null for any time. */
  readonly undecidedMs: number | null;
}

/** What a call may write that has a size. */
interface Written {
  readonly metadata?: Metadata | null | undefined;
  readonly prompt?: string | null | undefined;
  readonly response?: string | null | undefined;
}

/** A call with valid input. One object for each: those of a large batch outlive collections of the young generation. */
export interface Placed {
  readonly kind: Kind;
  readonly input: Written;
  readonly call: IdempotentCall | null;
  readonly place: number;
  /** Its place among the calls of its key, once it has one; null for one without a key. */
  flight: Flight | null;
}

/** The results of a request. */
export interface Results {
  /** As JSON texts, separated by commas. */
  readonly text: string;
  /** Whether one of them was not decided: the service failed at it, or the rate limit or a cap refused it. */
  readonly isPartial: boolean;
}

/** The calls of a request while they are decided. */
export class Work {
  readonly request: TogetherRequest;
  readonly form: Form;
  /** The text of each result; empty for a call that is undecided. */
  readonly texts: string[];
  /** Batches of changes that must be durable before the answer leaves. */
  readonly awaited = new Set<Batch>();
  /** Undecided calls without a key. */
  keyless = 0;
  onKeylessDecided: (() => void) | null = null;
  isPartial = false;

  constructor(request: TogetherRequest, form: Form, calls: number) {
    this.request = request;
    this.form = form;
    this.texts = Array<string>(calls).fill("");
  }

  /** Takes the answer of a call. */
  decided({ kind, flight, place }: Placed, answer: WrittenAnswer, thrown?: unknown): void {
    this.#show(place, kind, answer, thrown);
    if (flight !== null) return;
    this.keyless -= 1;
    if (this.keyless === 0) this.onKeylessDecided?.();
  }

  /** Takes what a call threw. */
  failed(placed: Placed, thrown: unknown): void {
    this.decided(placed, refusedWith(thrown), thrown);
  }

  /** Takes what a call threw before it had a place. */
  refused(place: number, kind: Kind | null, thrown: unknown): void {
    this.#show(place, kind, refusedWith(thrown), thrown);
  }

  #show(place: number, kind: Kind | null, answer: WrittenAnswer, thrown: unknown): void {
    if (answer.status >= STATUS.rate_limited && !isKept(answer.code)) this.isPartial = true;
    this.texts[place] = this.form.textOf(this.request, kind, answer, thrown);
  }
}

/** Calls that are decided together. */
export interface Piece {
  readonly calls: Placed[];
  bytes: number;
}

/** Returns calls in pieces. */
export function piecesOf(placed: readonly Placed[]): Piece[] {
  const pieces: Piece[] = [];
  for (const call of placed) {
    const bytes = bytesOf(call);
    let piece = pieces.at(-1);
    if (piece === undefined || piece.bytes + bytes > RUNTIME_LIMITS.batchPieceBytes) {
      pieces.push(piece = { calls: [], bytes: 0 });
    }
    piece.calls.push(call);
    piece.bytes += bytes;
  }
  return pieces;
}

/** Bytes of a call's row and counters, about. */
const ROW_BYTES = 512;

/** About what a call writes. */
function bytesOf({ input: { metadata, prompt, response } }: Placed): number {
  return ROW_BYTES + (metadata?.text.length ?? 0) + (prompt?.length ?? 0) + (response?.length ?? 0);
}

/** The answer to a call that threw. */
export function refusedWith(error: unknown): WrittenAnswer<never> {
  return write(failure(refusalOf("", error)));
}
