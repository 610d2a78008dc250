// The story of a failure: what the users of the call in question went through, in order, among what went wrong
// around them. For people; nothing reads it again.

import { type Attempt, type Call, isFinal } from "./history.ts";

/** Something that happened beside the calls. */
export interface Note {
  readonly order: number;
  readonly text: string;
}

const LINES_MAX = 120;

/** The lines of a story; all calls where no call is named. */
export function storyOf(calls: readonly Call[], notes: readonly Note[], message: string): string[] {
  const named = /\bcall (\d+)\b/.exec(message);
  const call = named === null ? undefined : calls[Number(named[1]) - 1];
  const reservation = /\b(?:rsv|crb|evt)_\w+/.exec(message)?.[0];
  const ids = call === undefined || call.tenant.isCanary ? null : usersOf(calls, call);
  const isOf = (each: Call) => {
    if (call !== undefined && each.tenant !== call.tenant) return false;
    const text = JSON.stringify([each.request.input, each.answer?.body ?? ""]);
    if (reservation !== undefined && text.includes(reservation)) return true;
    return ids === null || [...ids].some((id) => text.includes(JSON.stringify(id).slice(1, -1)));
  };
  const lines = [
    ...notes.map(({ order, text }) => ({ order, text: `      -- ${text}` })),
    ...calls.filter(isOf).flatMap((each) => linesOf(each)),
  ];
  const end = call === undefined
    ? Infinity
    : Math.max(0, ...call.attempts.map(({ repliedAt }) => repliedAt ?? 0));
  const told = lines.filter(({ order }) => order <= end).sort((a, b) => a.order - b.order);
  return told.slice(-LINES_MAX).map(({ order, text }) => `${String(order).padStart(6)} ${text}`);
}

/** The ids of a call, and of what its reservation or balance belongs to. */
function usersOf(calls: readonly Call[], { request: { input } }: Call): Set<string> {
  const ids = new Set<string>();
  for (const name of ["userId", "from", "to", "distinctId", "reservationId", "balanceId"]) {
    const id = input[name];
    if (typeof id === "string") ids.add(id);
  }
  for (const { request, answer } of calls) {
    const isSource = [...ids].some((id) => answer?.body.includes(id) === true);
    if (isSource && typeof request.input["userId"] === "string") ids.add(request.input["userId"]);
  }
  return ids;
}

function linesOf({ no, key, calledAt, request, attempts, answeredAt, answer }: Call): Note[] {
  const name = `call ${no}`;
  const asked = `${name} ${request.op} ${cut(JSON.stringify(request.input), 150)}${
    key === null ? "" : ` ${key}`
  }`;
  return [
    { order: calledAt, text: asked },
    ...attempts.flatMap((attempt) => attemptLines(name, attempt)),
    ...(answeredAt === null || answer === null
      ? []
      : [{ order: answeredAt, text: `${name} hears ${answer.status}` }]),
  ];
}

function attemptLines(name: string, { process, turns, reply, repliedAt }: Attempt): Note[] {
  const lines = turns.map(({ order, decidedAt, now, batch, process: ran }) => {
    const later = decidedAt === order ? "" : `decided at ${decidedAt}, `;
    const fate = batch === null
      ? "changes nothing"
      : batch.durableAt === null
      ? "LOST"
      : `durable at ${batch.durableAt}`;
    return { order, text: `  ${name} turn in ${ran.name}, ${new Date(now).toISOString()}, ${later}${fate}` };
  });
  if (reply === null || repliedAt === null || !isFinal(reply)) return lines;
  const replayed = reply.isReplayed ? " again" : "";
  return [...lines, {
    order: repliedAt,
    text: `  ${name} answer${replayed} of ${process.name}: ${cut(reply.body, 200)}`,
  }];
}

function cut(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length)}...`;
}
