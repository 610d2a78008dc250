// The first modules of the program's workers. A binary has only those that its build lists.

export const WORKERS = [
  "routes/gateway/body_worker.ts",
  "src/storage/embedded/create_worker.ts",
  "src/storage/journal/drain_worker.ts",
  "src/webhooks/attempt_worker.ts",
];
