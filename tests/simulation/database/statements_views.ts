// Statements behind the reads of tables: feed, ledger, subscription history.

import type { Statement } from "tests/simulation/database/statements.ts";

export const VIEWS: readonly (readonly [start: string, statement: Statement])[] = [];
