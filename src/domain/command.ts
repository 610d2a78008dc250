// Every command on a user, by name. Each command's file owns its input and its answer.

import type { ParentAnswer, SetParentInput } from "./accounts/parent.ts";
import type { EndRunInput, OpenRunInput, RunAnswer, RunsAnswer } from "./accounts/run.ts";
import type {
  CreateEndUserKeyInput,
  EndUserKeysAnswer,
  RevokeEndUserKeyInput,
  UseEndUserKeyInput,
} from "./accounts/end_user_keys.ts";
import type { EndUserKey, KeyHolder } from "./state/end_user_key.ts";
import type { FeaturesAnswer, FeaturesInput } from "./plans/features.ts";
import type { MembersAnswer, MembersInput, UsageAnswer, UsageInput, UserAnswer } from "./usage.ts";
import type { TrackAnswer, TrackInput } from "./metering/track.ts";
import type { SubscribeInput, SubscriptionAnswer } from "./plans/subscribe.ts";
import type { SettleAnswer } from "./metering/due.ts";
import type { ExtendAnswer, ExtendInput } from "./credits/extend.ts";
import type { RevokeInput } from "./credits/revoke.ts";
import type { ReleaseInput } from "./metering/release.ts";
import type { ProlongAnswer, ProlongInput } from "./metering/prolong.ts";
import type { GrantInput } from "./credits/grant.ts";
import type { RefundAnswer, RefundInput } from "./credits/refund.ts";
import type { ReinstateInput } from "./credits/reinstate.ts";
import type { GenerateAnswer, GenerateInput } from "./metering/generate.ts";
import type { ExplainAnswer } from "./metering/explanation.ts";
import type { CreditsAnswer, CreditsInput } from "./credits/balances.ts";
import type { ConsentAnswer, ConsentInput } from "./consent.ts";
import type { CommitAnswer, CommitInput } from "./metering/commit.ts";
import type { CancelInput } from "./plans/cancel.ts";
import type { ScheduleInput } from "./plans/schedule.ts";
import type { MirrorAnswer, MirrorInput } from "./plans/mirror.ts";
import type { DeletedTopUp, PutTopUpInput, TopUpAnswer } from "./credits/top_up_setting.ts";
import type { TopUpWorkAnswer, TopUpWorkInput } from "./credits/top_up_work.ts";
import type { CanUseAnswer, CanUseInput, ReserveAnswer, ReserveInput } from "./metering/reserve.ts";

/** Commands by name, each with its input and its answer. */
export interface Commands {
  reserve: { input: ReserveInput; answer: ReserveAnswer };
  commit: { input: CommitInput; answer: CommitAnswer };
  release: { input: ReleaseInput; answer: Record<never, never> };
  prolong: { input: ProlongInput; answer: ProlongAnswer };
  track: { input: TrackInput; answer: TrackAnswer };
  canUse: { input: CanUseInput; answer: CanUseAnswer };
  explain: { input: CanUseInput; answer: ExplainAnswer };
  subscribe: { input: SubscribeInput; answer: SubscriptionAnswer };
  cancel: { input: CancelInput; answer: SubscriptionAnswer };
  schedule: { input: ScheduleInput; answer: SubscriptionAnswer };
  mirror: { input: MirrorInput; answer: MirrorAnswer };
  grant: { input: GrantInput; answer: CreditsAnswer };
  refund: { input: RefundInput; answer: RefundAnswer };
  reinstate: { input: ReinstateInput; answer: RefundAnswer };
  extend: { input: ExtendInput; answer: ExtendAnswer };
  revoke: { input: RevokeInput; answer: Record<never, never> };
  credits: { input: CreditsInput; answer: CreditsAnswer };
  usage: { input: UsageInput; answer: UsageAnswer };
  user: { input: Record<never, never>; answer: UserAnswer };
  features: { input: FeaturesInput; answer: FeaturesAnswer };
  consent: { input: ConsentInput; answer: ConsentAnswer };
  generate: { input: GenerateInput; answer: GenerateAnswer };
  detach: { input: Pick<ReleaseInput, "reservationId">; answer: Record<never, never> };
  members: { input: MembersInput; answer: MembersAnswer };
  setParent: { input: SetParentInput; answer: ParentAnswer };
  openRun: { input: OpenRunInput; answer: RunAnswer };
  endRun: { input: EndRunInput; answer: RunAnswer };
  checkRun: { input: Pick<EndRunInput, "runId">; answer: RunsAnswer };
  createEndUserKey: { input: CreateEndUserKeyInput; answer: EndUserKey };
  endUserKeys: { input: Record<never, never>; answer: EndUserKeysAnswer };
  useEndUserKey: { input: UseEndUserKeyInput; answer: KeyHolder };
  revokeEndUserKey: { input: RevokeEndUserKeyInput; answer: Record<never, never> };
  putTopUp: { input: PutTopUpInput; answer: TopUpAnswer };
  readTopUp: { input: Record<never, never>; answer: TopUpAnswer };
  deleteTopUp: { input: Record<never, never>; answer: DeletedTopUp };
  topUpWork: { input: TopUpWorkInput; answer: TopUpWorkAnswer };
  settle: { input: Record<never, never>; answer: SettleAnswer };
}

export type CommandName = keyof Commands;
