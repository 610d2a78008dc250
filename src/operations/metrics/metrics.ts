// Every metric of a service. Each reads its value when somebody asks for the metrics (`collect` of the metrics
// library), so that the code that is measured only adds to plain numbers. The README of this folder says what each
// metric means and which are worth an alert; a test compares the two.

import { cpuUsage } from "node:process";
import { Gauge, Registry } from "prom-client";
import type { Service, ServiceState } from "../../cluster/service.ts";
import { GATEWAY_OUTCOMES } from "../../process/counts/gateway_counts.ts";
import { addCounter, addCounters, addGauge } from "./metric_forms.ts";
import { ANSWER_CODES } from "../../process/counts/request_counts.ts";
import { COMMAND_NAMES, RESERVE_OUTCOMES } from "../../process/counts/runtime_counts.ts";
import { addWebhooks } from "./webhook_metrics.ts";

const STATES: readonly ServiceState[] = ["starting", "standby", "serving", "leaving", "stopping"];
const MODES = ["live", "test"] as const;
const STARTED_AT_SECONDS = (Date.now() - performance.now()) / 1000;

/** The metrics of a service, ready to be written as Prometheus text. */
export function makeMetrics(service: Service): Registry {
  const registry = new Registry();
  addTerm(registry, service);
  addCells(registry, service);
  addChannels(registry, service);
  addRequests(registry, service);
  addStreams(registry, service);
  addTurns(registry, service);
  addRefusals(registry, service);
  addJournal(registry, service);
  addActors(registry, service);
  addSweeps(registry, service);
  addWebhooks(registry, service);
  addGateway(registry, service);
  addProcess(registry);
  return registry;
}

function addTerm(registry: Registry, service: Service): void {
  const { counts } = service;
  addGauge(
    registry,
    "holdfast_serving",
    "1 while this process serves.",
    () => service.serving === null ? 0 : 1,
  );
  new Gauge({
    name: "holdfast_state",
    help: "1 for the state that this process is in.",
    labelNames: ["state"],
    registers: [registry],
    collect() {
      for (const state of STATES) this.set({ state }, service.state === state ? 1 : 0);
    },
  });
  addCounter(
    registry,
    "holdfast_terms_total",
    "Times this process joined the members.",
    () => counts.termsBegun,
  );
  addCounter(
    registry,
    "holdfast_terms_lost_total",
    "Times a fault ended this process's term: a lost session, a failed append or drain.",
    () => counts.termsLost,
  );
  addGauge(
    registry,
    "holdfast_beat_age_seconds",
    "Seconds since the last beat that proved this member; past 3 it answers nothing.",
    () => service.serving?.lease.beatAgeSeconds ?? null,
  );
  addGauge(
    registry,
    "holdfast_registry_version",
    "The version of workspaces, apps, keys and catalogs that is in force here.",
    () => service.serving?.registry.version ?? null,
  );
  addGauge(
    registry,
    "holdfast_members",
    "Members that may answer, as this one sees them.",
    () => service.serving?.member.living.length ?? null,
  );
}

function addCells(registry: Registry, service: Service): void {
  const { cluster } = service.counts;
  addGauge(
    registry,
    "holdfast_cells",
    "Cells that this member owns, of 64.",
    () => service.serving?.term.doors.held.length ?? null,
  );
  const counters = [
    ["calls_passed_on", "Calls that another member answered for this one.", () => cluster.passedOn],
    ["calls_sent_again", "Calls that came back unrun and were sent again.", () => cluster.sentAgain],
    ["calls_taken", "Calls that this member answered for others.", () => cluster.taken],
    ["cells_taken", "Cells that this member took.", () => cluster.cellsTaken],
    ["cells_rescued", "Cells taken after the death of their owner.", () => cluster.cellsRescued],
    ["cells_handed_over", "Cells that this member handed over.", () => cluster.cellsHandedOver],
    ["hand_overs_dropped", "Hand-overs that were dropped for slow calls.", () => cluster.handOversDropped],
  ] as const;
  for (const [name, help, read] of counters) addCounter(registry, `holdfast_${name}_total`, help, read);
  registry.registerMetric(cluster.takeSeconds);
  registry.registerMetric(cluster.handOverSeconds);
}

function addChannels(registry: Registry, service: Service): void {
  const { channels } = service.counts.cluster;
  addGauge(
    registry,
    "holdfast_channels",
    "Other members to which there is a channel.",
    () => channelsOf(service),
  );
  addCounters(registry, "holdfast_channel_events_total", "Channels opened and lost; peers refused.", [
    "event",
  ], () => [
    [{ event: "opened" }, channels.opened],
    [{ event: "lost" }, channels.lost],
    [{ event: "refused" }, channels.refusedPeers],
  ]);
  addCounters(registry, "holdfast_channel_frames_total", "Frames on all channels.", ["direction"], () => [
    [{ direction: "sent" }, channels.framesSent],
    [{ direction: "received" }, channels.framesReceived],
  ]);
  addCounters(registry, "holdfast_channel_bytes_total", "Bytes on all channels.", ["direction"], () => [
    [{ direction: "sent" }, channels.bytesSent],
    [{ direction: "received" }, channels.bytesReceived],
  ]);
}

function channelsOf({ serving }: Service): number | null {
  if (serving === null) return null;
  const { member } = serving;
  return member.living.filter(({ term }) => term !== member.term && member.reaches(term)).length;
}

function addStreams(registry: Registry, { counts: { streams } }: Service): void {
  addGauge(registry, "holdfast_streams", "Streams of usage that this process holds.", () => streams.open);
  addCounter(
    registry,
    "holdfast_stream_states_total",
    "States that streams have sent.",
    () => streams.states,
  );
  addCounters(
    registry,
    "holdfast_streams_ended_total",
    "Streams that ended, by the reason that their readers were told; left: the reader went.",
    ["reason"],
    () => [
      ...Object.entries(streams.ended).map(([reason, count]) => [{ reason }, count] as const),
      [{ reason: "left" }, streams.left] as const,
    ],
  );
}

function addRequests(registry: Registry, { counts: { requests } }: Service): void {
  addCounters(
    registry,
    "holdfast_requests_total",
    "Requests answered, by route and code: ok, or the code of the error.",
    ["method", "route", "code"],
    function* () {
      for (const { method, route, codes } of requests.routes) {
        for (const [index, code] of ANSWER_CODES.entries()) {
          const value = codes[index] as number;
          // A series for each of 30 errors of each route would be thousands: one appears with its first answer.
          if (code === "ok" || value > 0) yield [{ method, route, code }, value];
        }
      }
    },
  );
  addCounter(
    registry,
    "holdfast_replays_total",
    "Answers that repeated the first one under an idempotency key.",
    () => requests.routes.reduce((sum, { replayed }) => sum + replayed, 0),
  );
  addGauge(
    registry,
    "holdfast_requests_in_flight",
    "Requests that have no answer yet.",
    () => requests.routes.reduce((sum, { inFlight }) => sum + inFlight, 0),
  );
  registry.registerMetric(requests.seconds);
}

function addTurns(registry: Registry, { counts: { runtime } }: Service): void {
  addCounters(
    registry,
    "holdfast_turns_total",
    "Decisions made, by command.",
    ["command"],
    () => COMMAND_NAMES.map((command, index) => [{ command }, runtime.turns[index] as number]),
  );
  registry.registerMetric(runtime.decideSeconds);
  addCounters(
    registry,
    "holdfast_reserves_total",
    "Reserves answered, by mode and outcome: allowed, or the reason why not.",
    ["mode", "outcome"],
    () =>
      MODES.flatMap((mode, modeIndex) =>
        RESERVE_OUTCOMES.map((outcome, index) =>
          [
            { mode, outcome },
            runtime.reserves[modeIndex * RESERVE_OUTCOMES.length + index] as number,
          ] as const
        )
      ),
  );
}

function addRefusals(registry: Registry, service: Service): void {
  const { runtime } = service.counts;
  addGauge(
    registry,
    "holdfast_refusals_waiting_rows",
    "Counts of refused calls that are in memory alone, by user, event, reasons and hour.",
    () => service.serving?.term.refusals.size ?? null,
  );
  addCounter(
    registry,
    "holdfast_refusals_written_rows_total",
    "Such rows written, new ones and additions.",
    () => runtime.refusalRowsWritten,
  );
  addCounter(
    registry,
    "holdfast_refusals_lost_total",
    "Refused calls that are in no row: too many rows in memory, or a write whose end is unknown.",
    () => runtime.refusedCallsLost,
  );
}

function addJournal(registry: Registry, service: Service): void {
  const { runtime } = service.counts;
  registry.registerMetric(runtime.appendSeconds);
  addGauge(
    registry,
    "holdfast_append_longest_seconds",
    "The longest append that ended in the last 15 seconds.",
    () => runtime.appendPeak.read(),
  );
  registry.registerMetric(runtime.appendChanges);
  addCounter(
    registry,
    "holdfast_append_bytes_total",
    "Characters of journal appended.",
    () => runtime.appendedBytes,
  );
  addGauge(
    registry,
    "holdfast_append_waiting_changes",
    "Changes that wait for an append.",
    () => service.serving?.term.gate.waitingChanges ?? null,
  );
  addGauge(
    registry,
    "holdfast_drain_backlog_changes",
    "Changes appended and not yet in the tables.",
    () => service.serving?.term.drain.backlogChanges ?? null,
  );
  addGauge(
    registry,
    "holdfast_drain_backlog_bytes",
    "Characters of journal not yet in the tables.",
    () => service.serving?.term.drain.backlogBytes ?? null,
  );
  addGauge(
    registry,
    "holdfast_drain_backlog_age_seconds",
    "How long the oldest batch has waited for the tables.",
    () => service.serving?.term.drain.backlogAgeSeconds ?? null,
  );
  registry.registerMetric(runtime.drainSeconds);
  addGauge(
    registry,
    "holdfast_drain_longest_seconds",
    "The longest drain that ended in the last 15 seconds.",
    () => runtime.drainPeak.read(),
  );
  registry.registerMetric(runtime.drainChanges);
}

function addActors(registry: Registry, service: Service): void {
  const { runtime } = service.counts;
  addGauge(
    registry,
    "holdfast_actors",
    "Users in memory.",
    () => service.serving?.term.directory.size ?? null,
  );
  addCounter(
    registry,
    "holdfast_actors_started_total",
    "Users taken into memory.",
    () => runtime.actorsStarted,
  );
  addCounter(registry, "holdfast_actors_let_go_total", "Users that left memory.", () => runtime.actorsLetGo);
  registry.registerMetric(runtime.loadSeconds);
  addGauge(
    registry,
    "holdfast_mailboxes_busy",
    "Mailboxes in which something is loaded, merged or erased.",
    () => service.serving?.term.mailboxes.busy ?? null,
  );
  addGauge(
    registry,
    "holdfast_mailbox_waiting_turns",
    "Turns that wait in busy mailboxes.",
    () => service.serving?.term.mailboxes.waitingTurns ?? null,
  );
  registry.registerMetric(runtime.mailboxSeconds);
}

function addSweeps(registry: Registry, { counts: { sweeps } }: Service): void {
  const each = Object.entries(sweeps);
  addCounters(
    registry,
    "holdfast_sweeps_total",
    "Runs of sweeps, by name and result.",
    ["sweep", "result"],
    () =>
      each.flatMap(([sweep, { finished, failed }]) => [
        [{ sweep, result: "finished" }, finished] as const,
        [{ sweep, result: "failed" }, failed] as const,
      ]),
  );
  addCounters(
    registry,
    "holdfast_sweep_rows_total",
    "Rows that sweeps settled, moved or removed.",
    ["sweep"],
    () => each.map(([sweep, { rows }]) => [{ sweep }, rows]),
  );
  new Gauge({
    name: "holdfast_sweep_finished_timestamp_seconds",
    help: "When a sweep last finished; 0 before its first run.",
    labelNames: ["sweep"],
    registers: [registry],
    collect() {
      for (const [sweep, { finishedAtSeconds }] of each) this.set({ sweep }, finishedAtSeconds);
    },
  });
}

function addGateway(registry: Registry, { counts: { gateway } }: Service): void {
  addGauge(registry, "holdfast_gateway_calls", "Calls of the gateway under way.", () => gateway.open);
  addGauge(registry, "holdfast_gateway_streams", "Of these, those that stream.", () => gateway.streams);
  addCounters(
    registry,
    "holdfast_gateway_calls_total",
    "Calls of the gateway that ended, by outcome.",
    ["outcome"],
    () => GATEWAY_OUTCOMES.map((outcome) => [{ outcome }, gateway.outcomes[outcome]]),
  );
  addCounter(
    registry,
    "holdfast_gateway_unsettled_total",
    "Holds of such calls that could not be settled in time, and lapse.",
    () => gateway.unsettled,
  );
  registry.registerMetric(gateway.firstByteSeconds);
}

function addProcess(registry: Registry): void {
  addGauge(registry, "process_start_time_seconds", "When the process started.", () => STARTED_AT_SECONDS);
  addCounter(registry, "process_cpu_seconds_total", "Processor time of the process, all threads.", () => {
    const { user, system } = cpuUsage();
    return (user + system) / 1e6;
  });
  addGauge(
    registry,
    "process_resident_memory_bytes",
    "Memory of the process.",
    () => Deno.memoryUsage().rss,
  );
  addGauge(
    registry,
    "process_heap_bytes",
    "Heap in use by the main thread.",
    () => Deno.memoryUsage().heapUsed,
  );
}
