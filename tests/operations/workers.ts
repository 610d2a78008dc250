// The first modules of the program's workers. A binary has only those that it was told to include.

export const WORKERS = ["src/storage/create_worker.ts", "src/storage/drain_worker.ts"];
