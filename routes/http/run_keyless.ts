// Where a call without an API key runs. What is about an app or a workspace runs at the owner of its cell. What is about
// all of them is asked of every owner, and their answers become one; a cell without an owner is 503, never a number that
// is too small (rule 17 of the cluster's design). Anything else runs wherever it arrives.

import { MayNotAnswer, Unavailable } from "../../actors/port.ts";
import { CELLS } from "../../actors/doors.ts";
import type { Term } from "../../actors/term.ts";
import type { Reply, StreamedReply } from "../../src/channel/hub.ts";
import type { Member } from "../../src/cluster/member.ts";
import { callSender, notRun, passOn, streamSender } from "../../src/cluster/passing.ts";
import { CELL_LIMITS } from "../../src/process/limits.ts";
import { cellOf } from "../../src/tenant/cell_of.ts";
import type { Registry } from "../../src/tenant/registry.ts";
import { type Answer, readAnswer, success, write, writeHandled, type WrittenAnswer } from "./answer.ts";
import type { Members } from "./body.ts";
import type { About, KeylessEndpoint } from "./endpoint_types.ts";
import { checkInput } from "./input.ts";
import { refusalOf, requestId } from "./respond.ts";

/** What every call without a key needs of the running term. */
export interface KeylessWorld {
  readonly registry: Pick<Registry, "apps" | "version">;
  readonly member: Member;
  readonly term: Pick<Term, "doors" | "isServing">;
}

/** A call whose input fits. */
export interface KeylessCall<World> {
  readonly endpoint: KeylessEndpoint<World>;
  /** As they were sent: what `input` was made of. */
  readonly members: Members;
  readonly input: unknown;
}

/** A call on its way to an owner. */
type CallOnTheWay = readonly [
  endpoint: string,
  registryVersion: number,
  requestId: string,
  members: Members,
  /** Whether the receiver is to answer for its own cells alone. */
  isOwn: boolean,
];

/** The head of a reply: its body is the answer's text, or follows as a stream. */
type ReplyHead = readonly [
  status: number,
  code: WrittenAnswer["code"],
  /** The cells that a member has answered for, where it was asked for its own. */
  cells: readonly number[],
  headers: Readonly<Record<string, string>>,
];

/** Runs a call where it belongs. */
export async function runKeylessAnywhere<World extends KeylessWorld>(
  world: World,
  call: KeylessCall<World>,
  request: Request,
): Promise<WrittenAnswer | Response> {
  const { endpoint, input } = call;
  const id = requestId(request);
  if (endpoint.gather !== undefined) return await gathered(world, call, id);
  const about = endpoint.about?.({ world, input }) ?? null;
  const cell = about === null ? null : cellAbout(world, about);
  if (cell === null) return await run(world, call, id);
  const onTheWay = onTheWayOf(world, call, id, false);
  while (true) {
    if (await world.term.doors.enter(cell)) return await runInside(world, call, cell, id);
    if (endpoint.mediaType === undefined) {
      const reply = await passOn(world.member, cell, callSender(world.member, onTheWay));
      if (reply !== null) return { ...answerOf(reply), requestId: id };
    } else {
      const reply = await passOn(world.member, cell, streamSender(world.member, onTheWay, request.signal));
      if (reply !== null) return await responseOf(reply);
    }
  }
}

function cellAbout({ registry }: KeylessWorld, about: About): number | null {
  return "appId" in about ? registry.apps.get(about.appId)?.cell ?? null : cellOf(about.workspaceId);
}

async function run<World extends KeylessWorld>(
  world: World,
  { endpoint, input }: Pick<KeylessCall<World>, "endpoint" | "input">,
  id: string,
): Promise<WrittenAnswer | Response> {
  const answer = await endpoint.handle({ world, input, requestId: id });
  if (!world.term.isServing) throw new MayNotAnswer();
  return answer instanceof Response ? answer : writeHandled(answer);
}

/** Runs a call that is inside its cell, and leaves when its answer has been sent. */
async function runInside<World extends KeylessWorld>(
  world: World,
  call: Pick<KeylessCall<World>, "endpoint" | "input">,
  cell: number,
  id: string,
): Promise<WrittenAnswer | Response> {
  const { doors } = world.term;
  const isLong = call.endpoint.isLong === true;
  if (isLong) doors.pin(cell);
  const leave = () => {
    if (isLong) doors.unpin(cell);
    doors.leave(cell);
  };
  try {
    const answer = await run(world, call, id);
    if (answer instanceof Response && answer.body !== null) return leavingAtEnd(answer, leave);
    leave();
    return answer;
  } catch (error) {
    leave();
    throw error;
  }
}

/** A response whose call leaves its cell when the reader has everything, or wants no more. */
function leavingAtEnd(response: Response, leave: () => void): Response {
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  let hasLeft = false;
  const end = () => {
    if (!hasLeft) leave();
    hasLeft = true;
  };
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (!done) return controller.enqueue(value);
        end();
        controller.close();
      } catch (error) {
        end();
        throw error;
      }
    },
    async cancel(reason) {
      end();
      await reader.cancel(reason);
    },
  }, { highWaterMark: 0 });
  return new Response(body, { status: response.status, headers: response.headers });
}

/** The answers of every owner as one. */
async function gathered<World extends KeylessWorld>(
  world: World,
  call: KeylessCall<World>,
  id: string,
): Promise<WrittenAnswer> {
  const { member } = world;
  let until = performance.now() + CELL_LIMITS.doorWaitMs;
  while (true) {
    const owners = new Set(member.parts.owners.all);
    const askedAt = performance.now();
    const replies = owners.has(null) ? null : await askAll(world, call, id, owners as ReadonlySet<number>);
    // A sweep may take minutes; what is bounded is the time without owners.
    until += performance.now() - askedAt;
    const failed = replies?.find(({ head }) => (head as ReplyHead)[0] !== 200);
    if (failed !== undefined) return answerOf(failed);
    const covered = replies?.flatMap(({ head }) => (head as ReplyHead)[2]) ?? [];
    // Cells that changed hands meanwhile are missing, or there twice: then everybody is asked again.
    if (replies !== null && covered.length === CELLS && new Set(covered).size === CELLS) {
      const answers = replies.map((reply) => readAnswer(answerOf(reply)));
      return write(combine(answers, call.endpoint.gather as (answers: readonly unknown[]) => unknown));
    }
    if (performance.now() > until) throw new Unavailable("Some workspaces have no owner at the moment");
    await member.lookForOwners();
  }
}

function combine(answers: readonly Answer[], gather: (answers: readonly unknown[]) => unknown): Answer {
  const refused = answers.find(({ ok }) => !ok);
  return refused ?? success(gather(answers.map((answer) => answer.ok ? answer.data : null)));
}

/** Asks every owner, this member too, for its own part; null where one cannot be asked. */
async function askAll<World extends KeylessWorld>(
  world: World,
  call: KeylessCall<World>,
  id: string,
  owners: ReadonlySet<number>,
): Promise<Reply[] | null> {
  const { member } = world;
  const send = callSender(member, onTheWayOf(world, call, id, true));
  const asked = [...owners].map((owner) => owner === member.term ? runOwn(world, call, id) : send(owner));
  return asked.includes(null) ? null : await Promise.all(asked as Promise<Reply>[]);
}

/** This member's part of an answer that all owners give together. */
async function runOwn<World extends KeylessWorld>(
  world: World,
  call: Pick<KeylessCall<World>, "endpoint" | "input">,
  id: string,
): Promise<Reply> {
  const { doors } = world.term;
  const before = doors.held;
  const answer = await run(world, call, id) as WrittenAnswer;
  // A cell that went meanwhile is asked for again: nobody knows whether the answer covers it.
  return replyOf(answer, before.filter((cell) => doors.isHere(cell)));
}

function onTheWayOf<World extends KeylessWorld>(
  { registry }: World,
  { endpoint, members }: KeylessCall<World>,
  id: string,
  isOwn: boolean,
): CallOnTheWay {
  return [endpoint.id, registry.version, id, members, isOwn];
}

/** Whether a passed call is one without an API key: it names an endpoint of these. */
export function isKeyless(endpoints: ReadonlyMap<string, unknown>, passed: unknown): boolean {
  return endpoints.has((passed as CallOnTheWay)[0]);
}

/** Answers a call that another member has let in. */
export async function runPassedKeyless<World extends KeylessWorld>(
  world: World,
  endpoints: ReadonlyMap<string, KeylessEndpoint<World>>,
  passed: unknown,
): Promise<Reply | StreamedReply> {
  const [name, version, id, members, isOwn] = passed as CallOnTheWay;
  const { member, registry, term } = world;
  try {
    if (version > registry.version) await member.reach(version);
    const endpoint = endpoints.get(name) as KeylessEndpoint<World>;
    const input = endpoint.input === null ? null : checkInput(endpoint, members);
    member.parts.counts.taken += 1;
    if (isOwn) return await runOwn(world, { endpoint, input }, id);
    const about = endpoint.about?.({ world, input }) ?? null;
    const cell = about === null ? null : cellAbout(world, about);
    if (cell === null) return replied(await run(world, { endpoint, input }, id));
    if (!await term.doors.enter(cell)) return notRun(member.parts.owners.of(cell));
    return replied(await runInside(world, { endpoint, input }, cell, id));
  } catch (error) {
    return replyOf(write({ ok: false, error: refusalOf(id, error) }));
  }
}

function replied(answer: WrittenAnswer | Response): Reply | StreamedReply {
  if (!(answer instanceof Response)) return replyOf(answer);
  const head: ReplyHead = [answer.status, "ok", [], Object.fromEntries(answer.headers)];
  return { head, body: answer.body };
}

function replyOf({ status, code, body }: WrittenAnswer, cells: readonly number[] = []): Reply {
  return { head: [status, code, cells, {}] satisfies ReplyHead, body };
}

function answerOf({ head, body }: Reply): WrittenAnswer {
  const [status, code] = head as ReplyHead;
  return { status, code, body };
}

/** A streamed reply as a response; one that is a refusal comes as its text. */
async function responseOf({ head, body }: StreamedReply): Promise<WrittenAnswer | Response> {
  const [status, code, , headers] = head as ReplyHead;
  if (code === "ok") return new Response(body, { status, headers });
  return { status, code, body: await new Response(body).text() };
}
