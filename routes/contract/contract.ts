// Every call of the API by its id, in the order of the reference.

import { listChildren, listMembers, setParent } from "./accounts.ts";
import { deleteTopUp, getTopUp, listTopUps, putTopUp } from "./top_ups.ts";
import { createUserKey, listUserKeys, revokeUserKey } from "./user_keys.ts";
import {
  changeWorkspace,
  createApp,
  createKey,
  createWorkspace,
  getApp,
  listApps,
  listKeys,
  listWorkspaces,
  revokeKey,
  rollKey,
  rotateIdentitySecret,
} from "./admin.ts";
import { findPersonLinks, listCoveredIds, listHolds, listUsers, lookUpId } from "./admin_users.ts";
import { batch, trackBatch } from "./batch.ts";
import {
  applyCatalog,
  dropCatalog,
  getCatalog,
  getCatalogVersion,
  listCatalogVersions,
  promoteCatalog,
} from "./catalogs.ts";
import { compose } from "./compose.ts";
import { extendCredits, grantCredits, listCredits, listLedger, revokeCredits } from "./credits.ts";
import { aliasCustomer, aliasCustomers, getCustomer } from "./customers.ts";
import { callsById } from "./definition.ts";
import { getEvent, listEvents } from "./events.ts";
import { getFeature, listFeatures } from "./features.ts";
import { canUse, commit, explain, release, reserve, track } from "./metering.ts";
import {
  examine,
  listAudit,
  listDailyUse,
  listStores,
  moveHistory,
  showCluster,
  splitStore,
  sweep,
} from "./service.ts";
import { listMargins } from "./margins.ts";
import { aliasPerson, capture, identify } from "./people.ts";
import { deletePerson, getDeletionStatus, isOptedOut, optIn, optOut } from "./privacy.ts";
import { downloadExport, exportPerson } from "./export.ts";
import { createReader, listReaders, removeReader } from "./readers.ts";
import { listRefusals } from "./refused_calls.ts";
import { listRequests, listUnknownKeys } from "./requests.ts";
import { createRun, endRun, getRun, listRuns } from "./runs.ts";
import {
  deleteStripe,
  getStripe,
  listUnhandledStripe,
  listUserStripe,
  receiveStripeMessage,
  retryUnhandledStripe,
  setStripe,
} from "./stripe.ts";
import { cancelSubscription, unscheduleSubscription, upsertSubscription } from "./subscriptions.ts";
import { getTestClock, moveTestClock } from "./test_clock.ts";
import { listOverage, setSpendCap } from "./overage.ts";
import { getMyUsage, getUsage, getUser, listPlans, listRates } from "./usage.ts";
import { streamUsage } from "./usage_stream.ts";
import {
  changeWebhook,
  createWebhook,
  deleteWebhook,
  listAttempts,
  listMessages,
  listWebhooks,
  pingWebhook,
  redeliverMessage,
  redeliverMessages,
  rotateWebhookSecret,
} from "./webhooks.ts";
import { whatIf } from "./what_if.ts";

/** Every call of the API by its id. */
export const CONTRACT = callsById({
  reserve,
  commit,
  release,
  track,
  canUse,
  explain,
  trackBatch,
  batch,
  getUsage,
  getMyUsage,
  getUser,
  listPlans,
  listRates,
  listOverage,
  setSpendCap,
  listFeatures,
  getFeature,
  setParent,
  listChildren,
  listMembers,
  createRun,
  getRun,
  listRuns,
  endRun,
  createUserKey,
  listUserKeys,
  revokeUserKey,
  streamUsage,
  upsertSubscription,
  cancelSubscription,
  unscheduleSubscription,
  grantCredits,
  extendCredits,
  revokeCredits,
  listCredits,
  listLedger,
  putTopUp,
  getTopUp,
  deleteTopUp,
  listTopUps,
  aliasCustomer,
  aliasCustomers,
  getCustomer,
  compose,
  capture,
  identify,
  aliasPerson,
  optOut,
  optIn,
  isOptedOut,
  deletePerson,
  getDeletionStatus,
  exportPerson,
  listEvents,
  getEvent,
  listRefusals,
  getTestClock,
  moveTestClock,
  downloadExport,
  listWorkspaces,
  createWorkspace,
  changeWorkspace,
  listApps,
  createApp,
  getApp,
  rotateIdentitySecret,
  listKeys,
  createKey,
  rollKey,
  revokeKey,
  getCatalog,
  applyCatalog,
  whatIf,
  dropCatalog,
  promoteCatalog,
  listCatalogVersions,
  getCatalogVersion,
  examine,
  showCluster,
  listStores,
  splitStore,
  sweep,
  moveHistory,
  listUsers,
  listHolds,
  lookUpId,
  listCoveredIds,
  findPersonLinks,
  listWebhooks,
  createWebhook,
  changeWebhook,
  deleteWebhook,
  rotateWebhookSecret,
  pingWebhook,
  listMessages,
  listAttempts,
  redeliverMessage,
  redeliverMessages,
  listReaders,
  createReader,
  removeReader,
  receiveStripeMessage,
  setStripe,
  getStripe,
  deleteStripe,
  listUnhandledStripe,
  listUserStripe,
  retryUnhandledStripe,
  listRequests,
  listUnknownKeys,
  listAudit,
  listDailyUse,
  listMargins,
});
