// Units of credits that agents granted, by UTC day. One statement adds and compares, so that processes that grant at once
// never pass the cap together.

import { type Amount, decimalOf, parseAmount } from "../../domain/values/amount.ts";
import type { Session } from "../database.ts";

/**
 * Adds units to a day of an agent unless the sum would pass the cap, and removes the days before.
 *
 * @returns whether they were added
 */
export async function takeUnits(
  session: Session,
  { who, day, units, cap }: { who: string; day: number; units: Amount; cap: Amount },
): Promise<boolean> {
  if (units > cap) return false;
  await session.query("delete from agent_grants where who = $1 and day < $2::int", [who, day]);
  const rows = await session.query(
    `insert into agent_grants as g (who, day, units) values ($1, $2::int, $3::numeric)
     on conflict (who, day) do update set units = g.units + excluded.units
       where g.units + excluded.units <= $4::numeric returning 1`,
    [who, day, decimalOf(units), decimalOf(cap)],
  );
  return rows.length > 0;
}

/** Takes units off a day again, after a grant that was refused. */
export async function giveBackUnits(
  session: Session,
  { who, day, units }: { who: string; day: number; units: Amount },
): Promise<void> {
  await session.query(
    "update agent_grants set units = units - $3::numeric where who = $1 and day = $2::int",
    [who, day, decimalOf(units)],
  );
}

/** Reads the units of a day. */
export async function readUnits(
  reader: Pick<Session, "query">,
  who: string,
  day: number,
): Promise<Amount> {
  const [row] = await reader.query<{ units: string }>(
    "select units::text as units from agent_grants where who = $1 and day = $2::int",
    [who, day],
  );
  return row === undefined ? 0n : parseAmount(row.units);
}
