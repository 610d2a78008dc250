// Plans of the statements that the service's own code sends: a database that explains each of them before it runs it,
// as the server plans it for these parameters, and for any where it might take that plan because it looks no dearer.
// What EXPLAIN wrote is taken back.
import type { Database, Param, Session } from "../../src/storage/database.ts";

/** A plan as the server told it. */
export interface Plan {
  readonly mode: "custom" | "generic";
  readonly statement: string;
  readonly lines: readonly string[];
}

/** The same database, telling the plan of every statement. */
export function explaining(database: Database, tell: (plan: Plan) => void): Database {
  const explained = (session: Session): Session => ({
    ...session,
    query: async (text, params = []) => {
      await explain(session, text, params, tell);
      return await session.query(text, params);
    },
  });
  const transaction = <T>(work: (session: Session) => Promise<T>) =>
    database.transaction((session) => work(explained(session)));
  return {
    ...database,
    transaction,
    query: (text, params) => transaction((session) => session.query(text, params)),
  };
}

async function explain(
  session: Session,
  text: string,
  params: readonly Param[],
  tell: (plan: Plan) => void,
): Promise<void> {
  if (text.includes("set_config")) return;
  const values = params.length === 0 ? "" : `(${params.map(literal).join(", ")})`;
  const run = async (mode: Plan["mode"], how: string) => {
    await session.query("savepoint explaining");
    await session.query(`set local plan_cache_mode = force_${mode}_plan`);
    await session.query(`prepare explained as ${text}`);
    const rows = await session.query<{ "QUERY PLAN": string }>(`explain (${how}) execute explained${values}`)
      .finally(() => session.query("rollback to savepoint explaining"));
    await session.query("deallocate explained");
    return { mode, statement: text.replaceAll(/\s+/g, " "), lines: rows.map((row) => row["QUERY PLAN"]) };
  };
  const custom = await run("custom", "analyze, buffers");
  tell(custom);
  if (params.length > 0 && costOf(await run("generic", "costs")) <= costOf(custom)) {
    tell(await run("generic", "analyze, buffers"));
  }
}

function costOf({ lines }: Plan): number {
  return Number(/cost=[\d.]+\.\.([\d.]+)/.exec(lines[0] ?? "")?.[1] ?? NaN);
}

function literal(value: Param): string {
  return value === null ? "null" : `'${String(value).replaceAll("'", "''")}'`;
}

/** Milliseconds of a plan's execution. */
export function executionMs({ lines }: Plan): number {
  const found = lines.map((line) => /^Execution Time: ([\d.]+) ms/.exec(line)?.[1]).find((ms) =>
    ms !== undefined
  );
  return Number(found ?? NaN);
}

/** Pages that a plan touched, in the server's memory and out of it; those that planning it touched are left out. */
export function pagesOf({ lines }: Plan): number {
  const planning = lines.findIndex((line) => line.startsWith("Planning:"));
  const ran = planning < 0 ? lines : lines.slice(0, planning);
  const first = ran.find((line) => line.includes("Buffers: shared")) ?? "";
  return [...first.matchAll(/(?:hit|read)=(\d+)/g)].reduce((sum, [, pages]) => sum + Number(pages), 0);
}
