// A call to a user: the command with its realm, what it needs, and how its first answer is kept.

import type { Amount } from "../src/domain/values/amount.ts";
import type { Catalog } from "../src/domain/catalog/catalog.ts";
import type { CommandName, Commands } from "../src/domain/command.ts";
import type { Outbox } from "../src/domain/state/outbox.ts";
import type { Result } from "../src/domain/state/result.ts";
import type { UserKey } from "../src/domain/values/ids.ts";
import type { Millis } from "../src/domain/values/period.ts";
import type { WorkspaceCaps } from "./budget.ts";
import type { IdempotentCall, WireAnswer } from "./idempotency.ts";
import type { BalanceRef, Mode } from "./port.ts";

/** The realm of a turn. */
export interface Realm {
  readonly realm: number;
  /** The cell of its workspace. */
  readonly cell: number;
  readonly mode: Mode;
  readonly catalog: Catalog;
  readonly caps: WorkspaceCaps;
  /** The webhooks that receive its messages; null for none. */
  readonly outbox: Outbox | null;
  /** The realm's clock. */
  now(): Millis;
}

/** Older rows that a command names: a reservation, a run, a top-up, or credit balances by id or external reference. */
export type Needed = { readonly reservationId: string } | { readonly runId: string } | {
  readonly topUpId: string;
} | BalanceRef;

/** A command to a user. */
export interface Call<Name extends CommandName> {
  readonly realm: Realm;
  readonly name: Name;
  readonly input: Commands[Name]["input"];
  /** Whether a workspace at its cap refuses the call: a reserve or a track. */
  readonly isCapped?: boolean | undefined;
  /** The model's cost of the call in cents, for the workspace's AI budget. */
  readonly aiCents?: Amount | undefined;
  /** The app whose gateway budget the cost of a commit counts toward. */
  readonly gatewayApp?: string | undefined;
  /** Rows to load before the turn. */
  readonly needs?: Needed | undefined;
  /** The number of the parent that the call sets; null or absent for any other call. */
  readonly newParent?: UserKey | null | undefined;
  /** Keeps the first answer; null or absent for a call without an idempotency key. */
  readonly keeping?: Keeping<Commands[Name]["answer"]> | null;
}

/** A call with an idempotency key, and the form of its answer. */
export interface Keeping<Answer> {
  readonly call: IdempotentCall;
  /** Whether no row of the key can exist, so that its first answer is a new row; absent where one may. */
  readonly isNew?: boolean;
  /** Makes the answer to keep; null to keep none. Runs before any change is applied: if it throws, nothing has changed. */
  readonly shape: (result: Result<Answer>) => WireAnswer | null;
}

/** The result of a turn: that of the decision, with the first answer if one was kept together with the changes. */
export type TurnResult<Answer> = Result<Answer> & { readonly kept?: WireAnswer };

/** Whether a call needs no user above, where the catalog has no features: these come from the users above too. */
export function isOfOneUser(
  { name, input, realm: { catalog } }: Pick<Call<CommandName>, "name" | "input" | "realm">,
): boolean {
  if (catalog.features.types.size > 0) return false;
  if (name === "usage") return (input as Commands["usage"]["input"]).withLevels !== true;
  return name === "subscribe" || name === "mirror" || name === "features";
}
