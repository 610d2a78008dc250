// Every metric of a service, by name. The README of this folder says what each means and which are worth an alert; a
// test compares the two.

import { cpuUsage } from "node:process";
import { Exposition, type Sample } from "./exposition.ts";
import type { Histogram } from "./histogram.ts";
import { ANSWER_CODES, type RouteCounts } from "./request_counts.ts";
import { COMMAND_NAMES, RESERVE_OUTCOMES, type RuntimeCounts } from "./runtime_counts.ts";
import type { Service, ServiceState } from "../service/service.ts";

const STATES: readonly ServiceState[] = ["starting", "standby", "serving", "stopping"];
const STARTED_AT_SECONDS = (Date.now() - performance.now()) / 1000;

/** The metrics of a service. */
export function makeMetrics(service: Service): Exposition {
  const exposition = new Exposition();
  addWriter(exposition, service);
  addRequests(exposition, service);
  addTurns(exposition, service.counts.runtime);
  addJournal(exposition, service);
  addActors(exposition, service);
  addSweeps(exposition, service);
  addProcess(exposition);
  return exposition;
}

function addWriter(exposition: Exposition, service: Service): void {
  const { counts } = service;
  exposition.gauge(
    "holdfast_writer",
    "1 while this process is the writer.",
    () => service.serving === null ? 0 : 1,
  );
  exposition.gauge(
    "holdfast_state",
    "1 for the state that this process is in.",
    () => STATES.map((state) => ({ labels: { state }, value: service.state === state ? 1 : 0 })),
  );
  exposition.counter(
    "holdfast_terms_total",
    "Times this process became the writer.",
    () => counts.termsBegun,
  );
  exposition.counter(
    "holdfast_terms_lost_total",
    "Times a fault ended this process's term as the writer: a lost lease or session, a failed append or drain.",
    () => counts.termsLost,
  );
  exposition.gauge(
    "holdfast_lease_silent_seconds",
    "Seconds since the writer's session last showed life; past 3 nothing is answered.",
    () => service.serving?.lease.silentSeconds ?? null,
  );
}

function addRequests(exposition: Exposition, { counts: { requests } }: Service): void {
  const each = (read: (route: RouteCounts) => Sample[]) => () => requests.routes.flatMap(read);
  const used = () => requests.routes.filter(({ started }) => started > 0);
  exposition.counter(
    "holdfast_requests_total",
    "Requests answered, by route and code: ok, or the code of the error.",
    each(({ method, route, codes }) =>
      ANSWER_CODES.map((code, index) => ({ labels: { method, route, code }, value: codes[index] as number }))
        .filter(({ labels, value }) => labels.code === "ok" || value > 0)
    ),
  );
  exposition.counter(
    "holdfast_replays_total",
    "Answers that repeated the first one under an idempotency key.",
    () => requests.routes.reduce((sum, { replayed }) => sum + replayed, 0),
  );
  exposition.gauge(
    "holdfast_requests_in_flight",
    "Requests that have no answer yet.",
    () => requests.routes.reduce((sum, { inFlight }) => sum + inFlight, 0),
  );
  exposition.histogram(
    "holdfast_request_seconds",
    "From a request to its answer, by route; one request of 16 of a route is timed.",
    () => used().map(({ method, route, seconds }) => [{ method, route }, seconds]),
  );
}

function addTurns(exposition: Exposition, counts: RuntimeCounts): void {
  exposition.counter(
    "holdfast_turns_total",
    "Decisions made, by command.",
    () =>
      COMMAND_NAMES.map((command, index) => ({ labels: { command }, value: counts.turns[index] as number })),
  );
  exposition.histogram(
    "holdfast_decide_seconds",
    "Time of a decision and of applying it; one of 16 of a command is timed.",
    plain(counts.decideSeconds),
  );
  exposition.counter(
    "holdfast_reserves_total",
    "Reserves answered, by mode and outcome: allowed, or the reason why not.",
    () =>
      ["live", "test"].flatMap((mode, modeIndex) =>
        RESERVE_OUTCOMES.map((outcome, index) => ({
          labels: { mode, outcome },
          value: counts.reserves[modeIndex * RESERVE_OUTCOMES.length + index] as number,
        }))
      ),
  );
}

function addJournal(exposition: Exposition, service: Service): void {
  const { runtime } = service.counts;
  exposition.histogram(
    "holdfast_append_seconds",
    "Time until a batch was durable in the journal.",
    plain(runtime.appendSeconds),
  );
  exposition.histogram("holdfast_append_changes", "Changes of a batch.", plain(runtime.appendChanges));
  exposition.counter(
    "holdfast_append_bytes_total",
    "Characters of journal appended.",
    () => runtime.appendedBytes,
  );
  exposition.gauge(
    "holdfast_append_waiting_changes",
    "Changes that wait for an append.",
    () => service.serving?.term.gate.waitingChanges ?? null,
  );
  exposition.gauge(
    "holdfast_drain_backlog_changes",
    "Changes appended and not yet in the tables.",
    () => service.serving?.term.drain.backlogChanges ?? null,
  );
  exposition.gauge(
    "holdfast_drain_backlog_bytes",
    "Characters of journal not yet in the tables.",
    () => service.serving?.term.drain.backlogBytes ?? null,
  );
  exposition.gauge(
    "holdfast_drain_backlog_age_seconds",
    "How long the oldest batch waits for the tables.",
    () => service.serving?.term.drain.backlogAgeSeconds ?? null,
  );
  exposition.histogram(
    "holdfast_drain_seconds",
    "Time of a transaction that moves batches into the tables.",
    plain(runtime.drainSeconds),
  );
  exposition.histogram(
    "holdfast_drain_changes",
    "Changes of such a transaction.",
    plain(runtime.drainChanges),
  );
}

function addActors(exposition: Exposition, service: Service): void {
  const { runtime } = service.counts;
  exposition.gauge("holdfast_actors", "Users in memory.", () => service.serving?.term.directory.size ?? null);
  exposition.counter(
    "holdfast_actors_started_total",
    "Users taken into memory.",
    () => runtime.actorsStarted,
  );
  exposition.counter("holdfast_actors_let_go_total", "Users let go from memory.", () => runtime.actorsLetGo);
  exposition.histogram(
    "holdfast_load_seconds",
    "Time of a query that loads users.",
    plain(runtime.loadSeconds),
  );
  exposition.gauge(
    "holdfast_mailboxes_busy",
    "Mailboxes in which something is loaded, merged or erased.",
    () => service.serving?.term.mailboxes.busy ?? null,
  );
  exposition.gauge(
    "holdfast_mailbox_waiting_turns",
    "Turns that wait in busy mailboxes.",
    () => service.serving?.term.mailboxes.waitingTurns ?? null,
  );
  exposition.histogram(
    "holdfast_mailbox_seconds",
    "Wait of a call in a mailbox, where it waited: for a load or for earlier turns.",
    plain(runtime.mailboxSeconds),
  );
}

function addSweeps(exposition: Exposition, { counts: { sweeps } }: Service): void {
  const each = Object.entries(sweeps);
  exposition.counter(
    "holdfast_sweeps_total",
    "Runs of sweeps, by name and result.",
    () =>
      each.flatMap(([sweep, { finished, failed }]) => [
        { labels: { sweep, result: "finished" }, value: finished },
        { labels: { sweep, result: "failed" }, value: failed },
      ]),
  );
  exposition.counter(
    "holdfast_sweep_rows_total",
    "Rows that sweeps settled, moved or removed.",
    () => each.map(([sweep, { rows }]) => ({ labels: { sweep }, value: rows })),
  );
  exposition.gauge(
    "holdfast_sweep_finished_timestamp_seconds",
    "When a sweep last finished; 0 before its first run.",
    () => each.map(([sweep, { finishedAtSeconds }]) => ({ labels: { sweep }, value: finishedAtSeconds })),
  );
}

function addProcess(exposition: Exposition): void {
  exposition.gauge(
    "process_start_time_seconds",
    "When the process started.",
    () => STARTED_AT_SECONDS,
  );
  exposition.counter("process_cpu_seconds_total", "Processor time of the process, all threads.", () => {
    const { user, system } = cpuUsage();
    return (user + system) / 1e6;
  });
  exposition.gauge(
    "process_resident_memory_bytes",
    "Memory of the process.",
    () => Deno.memoryUsage().rss,
  );
  exposition.gauge(
    "process_heap_bytes",
    "Heap in use by the main thread.",
    () => Deno.memoryUsage().heapUsed,
  );
}

function plain(histogram: Histogram) {
  return () => [[{}, histogram]] as const;
}
