// Messages of webhooks. All webhooks receive the same messages of a turn, while they are enabled. A message at an endpoint
// was recorded for it, in these bytes; a later message of a user comes after the earlier ones were taken or given up.
// When faults have stopped, every recorded message has been taken, or was tried as often as allowed.

import type { Fields } from "../../support/memory_store.ts";
import type { WebhookMessage } from "../../../src/domain/state/message.ts";
import { type Call, isFinal } from "../history.ts";
import type { Receipt } from "../receiver.ts";
import type { Turn } from "../recorder.ts";
import type { SimWebhook, Tenant } from "../tenants.ts";
import type { Checker, Scene } from "../watch.ts";

/** The first attempt and one after each delay. */
const ATTEMPTS = 8;

/** A message with the place of its user's messages to its webhook. */
interface Recorded extends WebhookMessage {
  readonly lane: Lane;
  readonly place: number;
}

/** What an endpoint has to be sent. */
type Sent = Pick<WebhookMessage, "id" | "webhookId" | "body" | "causedBy">;

/** What was recorded of one user for one webhook, in the order of the turns. */
interface Lane {
  readonly messages: Recorded[];
  /** How many of the first ones are known to be over. */
  over: number;
}

/** Looks at every turn, at every message as it comes, and at the end. */
export function messagesChecker(): Checker {
  const recorded = new Map<string, Recorded>();
  const lanes = new Map<string, Lane>();
  /** Messages of erasures that have come, which no turn records. */
  const erasures = new Map<string, Sent>();
  const laneOf = (webhookId: string, userKey: number): Lane => {
    const key = `${webhookId} ${userKey}`;
    const lane = lanes.get(key) ?? { messages: [], over: 0 };
    lanes.set(key, lane);
    return lane;
  };
  return {
    name: "messages",
    onTurn(turn, scene) {
      const messages = turn.changes.flatMap(({ table, row }) => table === "webhook_messages" ? [row] : []);
      for (const message of messages) {
        if (message.userKey === null) throw new Error(`message ${message.id} of a turn has no user`);
        const lane = laneOf(message.webhookId, message.userKey);
        const known: Recorded = { ...message, lane, place: lane.messages.length };
        lane.messages.push(known);
        recorded.set(message.id, known);
      }
      checkListeners(turn, messages, scene);
    },
    onReceipt(receipt, scene) {
      const message = recorded.get(receipt.messageId);
      if (message === undefined) {
        const { messageId: id } = receipt;
        const ofErasure = erasures.get(id) ?? erasureMessage(id, scene);
        erasures.set(id, ofErasure);
        return checkSame(ofErasure, receipt, scene);
      }
      checkSame(message, receipt, scene);
      if (!scene.isGone(message.userKey as number)) checkOrder(message, scene, laneOf);
    },
    atEnd(scene) {
      for (const message of recorded.values()) {
        if (scene.isGone(message.userKey as number) || isOver(message, scene)) continue;
        const { id, type, webhookId } = message;
        const row = rowOf(id, scene);
        throw new Error(`message ${id} ${type} for ${webhookId} was never taken: ${JSON.stringify(row)}`);
      }
    },
  };
}

/** A message about an erasure: there is one for each webhook and finished job. */
function erasureMessage(id: string, scene: Scene): Sent {
  const row = rowOf(id, scene);
  if (row?.type !== "person.erased" || row.user_key !== null) {
    throw new Error(`message ${id} came, and no turn has recorded it`);
  }
  const { tables } = scene.server;
  const { data: { jobId } } = JSON.parse(row.body as string) as { data: { jobId: string } };
  const [job] = tables.list("erasure_jobs", (each) => each.id === jobId);
  if (job?.status !== "completed") throw new Error(`message ${id} reports ${jobId}, which is not completed`);
  const alike = tables.list(
    "webhook_messages",
    (other) =>
      other.type === "person.erased" && other.webhook_id === row.webhook_id &&
      (other.body as string).includes(jobId),
  );
  if (alike.length !== 1) throw new Error(`${row.webhook_id} gets ${alike.length} messages about ${jobId}`);
  return { id, webhookId: row.webhook_id as string, body: row.body as string, causedBy: null };
}

function checkSame(sent: Sent, receipt: Receipt, scene: Scene): void {
  const { id, webhookId, body, causedBy } = sent;
  const webhook = scene.tenants.flatMap(({ webhooks }) => webhooks).find((each) =>
    each.webhookId === webhookId
  );
  if (webhook?.url !== receipt.url) throw new Error(`message ${id} for ${webhookId} came to ${receipt.url}`);
  if (body === receipt.body) return;
  // An erasure takes its user out of messages of users above.
  if (causedBy !== null && scene.isGone(causedBy) && withoutCause(body) === receipt.body) return;
  throw new Error(`message ${id} came as ${receipt.body}, and was ${body}`);
}

function withoutCause(body: string): string {
  const { data, ...message } = JSON.parse(body) as { data: Record<string, unknown> };
  const { causedBy: _, ...kept } = data;
  return JSON.stringify({ ...message, data: kept });
}

/** Everything that goes before a message is over: the user's earlier messages, and with a merge all of the alias's. */
function checkOrder(
  message: Recorded,
  scene: Scene,
  laneOf: (webhookId: string, userKey: number) => Lane,
): void {
  checkLane(message.lane, message.place, message, scene);
  if (message.type !== "user.merged") return;
  const from = (JSON.parse(message.body) as { data: { from: string } }).data.from;
  const [user] = scene.expected.list("users", (row) => row.realm === message.realm && row.id === from);
  const lane = laneOf(message.webhookId, Number(user?.key));
  checkLane(lane, lane.messages.length, message, scene);
}

function checkLane(lane: Lane, until: number, message: Recorded, scene: Scene): void {
  while (lane.over < until) {
    const earlier = lane.messages[lane.over] as Recorded;
    if (!isOver(earlier, scene)) {
      const { id, type } = message;
      throw new Error(`message ${id} ${type} came before ${earlier.id} ${earlier.type}, which is not over`);
    }
    lane.over += 1;
  }
}

/** Whether nothing is to come of a message any more: its endpoint took it, or it was tried often enough. */
function isOver({ id }: Recorded, scene: Scene): boolean {
  const { receiver } = scene;
  if (receiver.hasTaken(id)) return true;
  const row = rowOf(id, scene);
  // What was given up is kept for a while.
  return receiver.attemptsOf(id) >= ATTEMPTS && (row === undefined || row.status === "failed");
}

function rowOf(id: string, { server: { tables } }: Scene): Fields | undefined {
  return tables.list("webhook_messages", (row) => row.id === id)[0];
}

/** Every listener gets the first one's messages of a turn, as far as it wants them; a disabled one gets none. */
function checkListeners(turn: Turn, messages: readonly WebhookMessage[], scene: Scene): void {
  const userKey = messages[0]?.userKey;
  const tenant = userKey == null ? undefined : scene.tenantOf(userKey);
  if (tenant === undefined) {
    if (messages.length > 0) throw new Error(`message ${messages[0]?.id} is of an unknown user`);
    return;
  }
  const [first, ...others] = tenant.webhooks as [SimWebhook, ...SimWebhook[]];
  if (messages.some(({ webhookId }) => !tenant.webhooks.some((each) => each.webhookId === webhookId))) {
    throw new Error(`a turn told a webhook of another workspace: ${JSON.stringify(messages)}`);
  }
  const bodiesFor = ({ webhookId }: SimWebhook) =>
    messages.filter((each) => each.webhookId === webhookId).map(({ body }) => body);
  if (standingAt(first, tenant, turn, scene) !== "listens") return;
  const all = bodiesFor(first);
  for (const webhook of others) {
    const wanted = all.filter((body) => webhook.wants(JSON.parse(body).type));
    const told = bodiesFor(webhook);
    const standing = standingAt(webhook, tenant, turn, scene);
    const isRight = JSON.stringify(told) === JSON.stringify(wanted) && standing !== "is disabled" ||
      told.length === 0 && standing !== "listens";
    if (isRight) continue;
    const what = `${told.length} of ${wanted.length}`;
    throw new Error(`${webhook.webhookId}, which ${standing}, was sent ${what}: ${wanted.join(", ")}`);
  }
}

/** Whether a webhook listened when a turn was decided, as far as that can be known. */
function standingAt(
  { webhookId }: SimWebhook,
  tenant: Tenant,
  turn: Turn,
  { calls, server: { tables } }: Scene,
): "listens" | "is disabled" | "may listen" {
  const [row] = tables.list("webhooks", (each) => each.webhookId === webhookId);
  if (row?.changedIn === 0) return "listens";
  const changes = calls.filter(({ request: { op, input }, tenant: other }) =>
    op === "setWebhook" && other === tenant && input["webhookId"] === webhookId
  );
  const last = changes.at(-1);
  // Where a sender has disabled it, the time is unknown.
  if (last === undefined || last.answer?.status !== 200) return "may listen";
  if (last.answeredAt === null || last.answeredAt > turn.order) return "may listen";
  if (!changes.slice(0, -1).every((call) => isOverBefore(call, last))) return "may listen";
  const isDisabled = last.request.input["disabled"] === true;
  if (isDisabled !== row?.disabled) return "may listen";
  return isDisabled ? "is disabled" : "listens";
}

/** Whether everything that came of a call was over when another began. */
function isOverBefore({ attempts }: Call, { calledAt }: Call): boolean {
  return attempts.every(({ reply, repliedAt }) =>
    reply !== null && isFinal(reply) && repliedAt !== null && repliedAt < calledAt
  );
}
