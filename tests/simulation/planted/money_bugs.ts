// Bugs of rates, of packs that plans include, and of top-ups to plant.

import { CREDIT_BALANCES } from "../../../src/storage/rows/credit_rows.ts";
import { RESERVATIONS } from "../../../src/storage/rows/metering_rows.ts";
import { TOP_UPS } from "../../../src/storage/rows/top_up_rows.ts";
import { only } from "../troubles.ts";
import { type PlantedBug, replace } from "./plant.ts";

export const MONEY_BUGS: readonly PlantedBug[] = [
  {
    name: "a load forgets that included credits were given",
    money: true,
    plant: () =>
      replace(CREDIT_BALANCES, "read", (read) => (stored) => ({ ...read(stored), included: null })),
  },
  {
    name: "a load forgets the rate of a hold",
    money: true,
    plant: () =>
      replace(RESERVATIONS, "read", (read) => (stored) => {
        const { rate: _, ...rest } = read(stored);
        return rest;
      }),
  },
  {
    name: "a load forgets the payment of a top-up",
    topUps: true,
    troubles: only({ crash: 1, restart: 1, sweep: 1 }),
    plant: () =>
      replace(
        TOP_UPS,
        "read",
        (read) => (stored) => ({ ...read(stored), paymentIntentId: null, isConfirmed: false }),
      ),
  },
];
