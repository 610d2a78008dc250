// Every metric of a service, a row each: name, help, and how its value is read from the counters of the process. Values
// are read only when Prometheus asks, so the code that is measured only adds to plain numbers. The README of this folder
// explains each metric and suggests alerts; a test compares the two.

import { cpuUsage } from "node:process";
import { Counter, Gauge, type Histogram, Registry } from "prom-client";
import type { Counts } from "../../cluster/counts.ts";
import type { Service, ServiceState } from "../../cluster/service.ts";
import { BODIES, GATEWAY, REQUESTS, STRIPE, WEBHOOKS } from "./traffic_metrics.ts";
import { counter, counters, gauge, type Metric, ofTerm, type Samples } from "./metric.ts";
import { COMMAND_NAMES, RESERVE_OUTCOMES } from "../../process/counts/runtime_counts.ts";

const STATES: readonly ServiceState[] = ["starting", "standby", "serving", "leaving", "stopping"];
const MODES = ["live", "test"] as const;
const STARTED_AT_SECONDS = (Date.now() - performance.now()) / 1000;

const TERM: readonly Metric[] = [
  gauge("holdfast_serving", "1 while this process serves.", ({ serving }) => serving === null ? 0 : 1),
  {
    type: "gauge",
    name: "holdfast_state",
    help: "1 for the current state of this process.",
    labels: ["state"],
    read: (service) => STATES.map((state) => [{ state }, service.state === state ? 1 : 0]),
  },
  counter("holdfast_terms_total", "Times this process joined the cluster.", ({ termsBegun }) => termsBegun),
  counter(
    "holdfast_terms_lost_total",
    "Times a fault ended the term of this process: a lost session, a failed append or drain.",
    ({ termsLost }) => termsLost,
  ),
  ofTerm(
    "holdfast_beat_age_seconds",
    "Seconds since the last successful heartbeat; after 3 the process answers no calls.",
    ({ lease }) => lease.beatAgeSeconds,
  ),
  ofTerm(
    "holdfast_registry_version",
    "Version of workspaces, apps, keys and catalogs in force in this process.",
    ({ registry }) => registry.version,
  ),
  ofTerm(
    "holdfast_members",
    "Live processes of the cluster, as this one sees them.",
    ({ node }) => node.living.length,
  ),
];

const CLUSTER: readonly Metric[] = [
  ofTerm("holdfast_cells", "Cells that this process owns, of 64.", ({ term }) => term.doors.held.length),
  counter(
    "holdfast_calls_passed_on_total",
    "Calls that another process answered for this one.",
    ({ cluster }) => cluster.passedOn,
  ),
  counter(
    "holdfast_calls_sent_again_total",
    "Calls that came back without having run, and were sent again.",
    ({ cluster }) => cluster.sentAgain,
  ),
  counter(
    "holdfast_calls_taken_total",
    "Calls that this process answered for others.",
    ({ cluster }) => cluster.taken,
  ),
  counter("holdfast_cells_taken_total", "Cells that this process took.", ({ cluster }) => cluster.cellsTaken),
  counter(
    "holdfast_cells_rescued_total",
    "Cells taken after the death of their owner.",
    ({ cluster }) => cluster.cellsRescued,
  ),
  counter(
    "holdfast_cells_handed_over_total",
    "Cells that this process handed over.",
    ({ cluster }) => cluster.cellsHandedOver,
  ),
  counter(
    "holdfast_hand_overs_dropped_total",
    "Hand-overs given up because calls did not end in time.",
    ({ cluster }) => cluster.handOversDropped,
  ),
  ofTerm(
    "holdfast_channels",
    "Other processes with an open channel.",
    ({ node }) => node.living.filter(({ term }) => term !== node.term && node.reaches(term)).length,
  ),
  counters(
    "holdfast_channel_events_total",
    "Channels opened and lost; peers refused.",
    ["event"],
    ({ cluster: { channels } }) => [
      [{ event: "opened" }, channels.opened],
      [{ event: "lost" }, channels.lost],
      [{ event: "refused" }, channels.refusedPeers],
    ],
  ),
  counters(
    "holdfast_channel_frames_total",
    "Frames on all channels.",
    ["direction"],
    ({ cluster: { channels } }) => directions(channels.framesSent, channels.framesReceived),
  ),
  counters(
    "holdfast_channel_bytes_total",
    "Bytes on all channels.",
    ["direction"],
    ({ cluster: { channels } }) => directions(channels.bytesSent, channels.bytesReceived),
  ),
];

function directions(sent: number, received: number): Samples {
  return [[{ direction: "sent" }, sent], [{ direction: "received" }, received]];
}

const TURNS: readonly Metric[] = [
  counters(
    "holdfast_turns_total",
    "Decisions made, by command.",
    ["command"],
    ({ runtime }) => COMMAND_NAMES.map((command, index) => [{ command }, runtime.turns[index] as number]),
  ),
  counters(
    "holdfast_reserves_total",
    "Reserves answered, by mode and outcome: allowed, or the reason why not.",
    ["mode", "outcome"],
    ({ runtime }) =>
      MODES.flatMap((mode, modeIndex) =>
        RESERVE_OUTCOMES.map((outcome, index) =>
          [
            { mode, outcome },
            runtime.reserves[modeIndex * RESERVE_OUTCOMES.length + index] as number,
          ] as const
        )
      ),
  ),
  ofTerm(
    "holdfast_refusals_waiting_rows",
    "Counts of refused calls in memory alone, by user, event, reasons and hour.",
    ({ term }) => term.refusedCalls.size,
  ),
  counter(
    "holdfast_refusals_written_rows_total",
    "Such counts written, new rows and additions.",
    ({ runtime }) => runtime.refusalRowsWritten,
  ),
  counter(
    "holdfast_refusals_lost_total",
    "Refused calls missing in the counts: too many rows in memory, or a write with an unknown result.",
    ({ runtime }) => runtime.refusedCallsLost,
  ),
  ofTerm(
    "holdfast_failed_requests_waiting_rows",
    "Rows of the log of failed requests in memory alone.",
    ({ requestLog }) => requestLog.size,
  ),
  counter(
    "holdfast_failed_requests_lost_total",
    "Failed requests missing in their log: too many rows in memory, or a write with an unknown result.",
    ({ runtime }) => runtime.failedRequestsLost,
  ),
];

const JOURNAL: readonly Metric[] = [
  ofTerm("holdfast_reads_running", "Reads of tables that run.", ({ reads }) => reads.running),
  ofTerm(
    "holdfast_reads_waiting",
    "Reads of tables that wait for a connection.",
    ({ reads }) => reads.waiting,
  ),
  counter(
    "holdfast_reads_refused_total",
    "Reads refused because too many of their app ran and waited.",
    ({ runtime }) => runtime.readsRefused,
  ),
  counter(
    "holdfast_drain_waits_refused_total",
    "Calls refused because the tables did not have the newest changes in time.",
    ({ runtime }) => runtime.flushesLate,
  ),
  gauge(
    "holdfast_append_longest_seconds",
    "The longest append that ended in the last 15 seconds.",
    ({ counts }) => counts.runtime.appendPeak.read(),
  ),
  counter(
    "holdfast_append_bytes_total",
    "Characters of journal appended.",
    ({ runtime }) => runtime.appendedBytes,
  ),
  ofTerm(
    "holdfast_append_waiting_changes",
    "Changes waiting for an append.",
    ({ term }) => term.gate.waitingChanges,
  ),
  ofTerm(
    "holdfast_drain_backlog_changes",
    "Changes appended and not yet in the tables.",
    ({ term }) => term.drain.backlogChanges,
  ),
  ofTerm(
    "holdfast_drain_backlog_bytes",
    "Characters of journal not yet in the tables.",
    ({ term }) => term.drain.backlogBytes,
  ),
  ofTerm(
    "holdfast_drain_backlog_age_seconds",
    "Age of the oldest batch that is not yet in the tables.",
    ({ term }) => term.drain.backlogAgeSeconds,
  ),
  gauge(
    "holdfast_drain_longest_seconds",
    "The longest drain that ended in the last 15 seconds.",
    ({ counts }) => counts.runtime.drainPeak.read(),
  ),
];

const ACTORS: readonly Metric[] = [
  ofTerm("holdfast_actors", "Users in memory.", ({ term }) => term.directory.size),
  counter(
    "holdfast_actors_started_total",
    "Users loaded into memory.",
    ({ runtime }) => runtime.actorsStarted,
  ),
  ofTerm(
    "holdfast_hold_text_bytes",
    "Metadata and prompts of open holds in memory, at two bytes a character.",
    ({ term }) => term.directory.textRoom.bytes,
  ),
  ofTerm(
    "holdfast_hold_text_bytes_of_one_app",
    "Those of the app that has most.",
    ({ term }) => term.directory.textRoom.bytesOfAppMost,
  ),
  counter(
    "holdfast_hold_texts_loaded_total",
    "Holds settled with texts that memory lacked, read from the tables.",
    ({ runtime }) => runtime.holdTextsLoaded,
  ),
  counter("holdfast_actors_let_go_total", "Users removed from memory.", ({ runtime }) => runtime.actorsLetGo),
  ofTerm(
    "holdfast_mailboxes_busy",
    "Mailboxes in which something is loaded, merged or erased.",
    ({ term }) => term.mailboxes.busy,
  ),
  ofTerm(
    "holdfast_mailbox_waiting_turns",
    "Turns waiting in busy mailboxes.",
    ({ term }) => term.mailboxes.waitingTurns,
  ),
];

const SWEEPS: readonly Metric[] = [
  counters(
    "holdfast_sweeps_total",
    "Runs of sweeps, by name and result.",
    ["sweep", "result"],
    ({ sweeps }) =>
      Object.entries(sweeps).flatMap(([sweep, { finished, failed }]) => [
        [{ sweep, result: "finished" }, finished] as const,
        [{ sweep, result: "failed" }, failed] as const,
      ]),
  ),
  counters(
    "holdfast_sweep_rows_total",
    "Rows that sweeps settled, moved or removed.",
    ["sweep"],
    ({ sweeps }) => Object.entries(sweeps).map(([sweep, { rows }]) => [{ sweep }, rows]),
  ),
  {
    type: "gauge",
    name: "holdfast_sweep_finished_timestamp_seconds",
    help: "When a sweep last finished; 0 before its first run.",
    labels: ["sweep"],
    read: ({ counts }) =>
      Object.entries(counts.sweeps).map(([sweep, { finishedAtSeconds }]) => [{ sweep }, finishedAtSeconds]),
  },
];

const PROCESS: readonly Metric[] = [
  gauge("process_start_time_seconds", "When the process started.", () => STARTED_AT_SECONDS),
  counter("process_cpu_seconds_total", "Processor time of the process, all threads.", () => {
    const { user, system } = cpuUsage();
    return (user + system) / 1e6;
  }),
  gauge("process_resident_memory_bytes", "Memory of the process.", () => Deno.memoryUsage().rss),
  gauge("process_heap_bytes", "Heap in use by the main thread.", () => Deno.memoryUsage().heapUsed),
];

/** Of a process, however many databases it has. */
const OF_PROCESS = [REQUESTS, BODIES, GATEWAY, PROCESS].flat();
/** Of each database, with the label `store` where there are several. */
const OF_STORE = [TERM, CLUSTER, TURNS, JOURNAL, ACTORS, SWEEPS, WEBHOOKS, STRIPE].flat();

/** Histograms are filled by the code that is measured. */
function histogramsOfStore({ runtime, cluster }: Counts): readonly Histogram[] {
  const { decideSeconds, appendSeconds, appendChanges, drainSeconds, drainChanges } = runtime;
  return [
    cluster.takeSeconds,
    cluster.handOverSeconds,
    decideSeconds,
    appendSeconds,
    appendChanges,
    drainSeconds,
    drainChanges,
    runtime.loadSeconds,
    runtime.mailboxSeconds,
  ];
}

/** The metrics of a process as Prometheus text. */
interface MetricsText {
  readonly contentType: string;
  readonly metrics: () => Promise<string>;
}

/** The metrics of a process, from the services of its databases. */
export function makeMetrics(services: readonly Service[]): MetricsText {
  const process = new Registry();
  const [first] = services as readonly [Service];
  for (const metric of OF_PROCESS) register(process, first, metric);
  for (const histogram of [first.counts.requests.seconds, first.counts.gateway.firstByteSeconds]) {
    process.registerMetric(histogram as Histogram);
  }
  const stores = services.map((service) => {
    const registry = new Registry();
    for (const metric of OF_STORE) register(registry, service, metric);
    for (const histogram of histogramsOfStore(service.counts)) registry.registerMetric(histogram);
    if (service.storeName !== null) registry.setDefaultLabels({ store: service.storeName });
    return registry;
  });
  return { contentType: process.contentType, metrics: () => textOf([process, ...stores]) };
}

/** The text of several registries: all samples of a metric are below its one help and type. */
async function textOf(registries: readonly Registry[]): Promise<string> {
  const samples = new Map<string, string[]>();
  for (const text of await Promise.all(registries.map((registry) => registry.metrics()))) {
    for (const block of text.trimEnd().split("\n\n")) {
      const [help, type, ...lines] = block.split("\n");
      const head = `${help}\n${type}`;
      samples.set(head, [...samples.get(head) ?? [], ...lines]);
    }
  }
  return [...samples].map(([head, lines]) => [head, ...lines].join("\n")).join("\n\n") + "\n";
}

function register(registry: Registry, service: Service, { type, name, help, labels, read }: Metric): void {
  const shared = { name, help, labelNames: [...labels], registers: [registry] };
  if (type === "counter") {
    new Counter<string>({
      ...shared,
      collect() {
        this.reset();
        for (const [labels, value] of samplesOf(read(service))) this.inc(labels, value);
      },
    });
    return;
  }
  new Gauge<string>({
    ...shared,
    collect() {
      const samples = [...samplesOf(read(service))];
      if (samples.length === 0) this.remove();
      for (const [labels, value] of samples) this.set(labels, value);
    },
  });
}

function samplesOf(value: number | null | Samples): Samples {
  if (value === null) return [];
  return typeof value === "number" ? [[{}, value]] : value;
}
