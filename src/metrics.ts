// Gauges of the running term in Prometheus' text form.

import type { Service } from "src/service.ts";

/** The gauges; without a term only whether this process is the writer. */
export function renderMetrics(service: Service): string {
  const { serving } = service;
  const gauges: [name: string, help: string, value: number][] = [
    ["holdfast_writer", "1 while this process is the writer.", serving === null ? 0 : 1],
  ];
  if (serving !== null) {
    const { drain, gate, directory } = serving.term;
    gauges.push(
      ["holdfast_drain_backlog_changes", "Changes appended and not yet in the tables.", drain.backlogChanges],
      ["holdfast_drain_backlog_bytes", "Characters of journal not yet in the tables.", drain.backlogBytes],
      ["holdfast_append_waiting_changes", "Changes that wait for an append.", gate.waitingChanges],
      ["holdfast_actors", "Users in memory.", directory.size],
    );
  }
  return gauges.map(([name, help, value]) =>
    `# HELP ${name} ${help}\n# TYPE ${name} gauge\n${name} ${value}\n`
  )
    .join("");
}
