// The dashboard for Grafana 10 or later, as a table of its panels. `deno task dashboard` prints it as JSON.

/** A line of a panel by its legend: an expression of PromQL, to which the choice of processes is added. */
type Lines = Readonly<Record<string, string>>;
type Unit = "short" | "s" | "bytes" | "Bps" | "ops" | "reqps" | "percentunit";
type Panel = readonly [title: string, unit: Unit, lines: Lines, description?: string];
/** Panels by row. Those of one row share its width. */
type Section = readonly [title: string, rows: readonly (readonly Panel[])[]];

/** The sections of the dashboard. The panels of the first one show a single number. */
const SECTIONS: readonly Section[] = [
  ["Service", [
    [
      ["Processes", "short", { processes: "sum(holdfast_serving)" }, "Processes that serve."],
      ["Requests a second", "reqps", { requests: "sum(rate(holdfast_requests_total[$__rate_interval]))" }],
      ["Server errors", "percentunit", {
        share:
          'sum(rate(holdfast_requests_total{code=~"internal_error|unavailable|generation_failed"}[$__rate_interval])) / sum(rate(holdfast_requests_total[$__rate_interval]))',
      }, "Share of answers with internal_error, unavailable or generation_failed."],
      [
        "Terms lost in a day",
        "short",
        { lost: "sum(increase(holdfast_terms_lost_total[1d]))" },
        "Faults that ended a term.",
      ],
      [
        "Backlog age",
        "s",
        { age: "max(holdfast_drain_backlog_age_seconds)" },
        "Age of the oldest batch that is not in the tables.",
      ],
      ["Users in memory", "short", { users: "sum(holdfast_actors)" }],
    ],
  ]],
  ["Requests", [
    [
      ["Requests by route", "reqps", {
        "{{method}} {{route}}":
          "sum by (method, route) (rate(holdfast_requests_total[$__rate_interval])) > 0",
      }],
      ["Answers by code, without ok", "reqps", {
        "{{code}}": 'sum by (code) (rate(holdfast_requests_total{code!="ok"}[$__rate_interval]))',
      }],
      ["Time to the answer, p99 by route", "s", {
        "{{method}} {{route}}":
          "histogram_quantile(0.99, sum by (le, method, route) (rate(holdfast_request_seconds_bucket[$__rate_interval])))",
      }, "One request of 16 is timed."],
    ],
    [
      ["Reserves by outcome", "reqps", {
        "{{mode}} {{outcome}}": "sum by (mode, outcome) (rate(holdfast_reserves_total[$__rate_interval]))",
      }, "Live and test mode."],
      ["In flight and replayed", "short", {
        "in flight": "sum(holdfast_requests_in_flight)",
        "replays a second": "sum(rate(holdfast_replays_total[$__rate_interval]))",
      }],
      ["Decisions by command", "ops", {
        "{{command}}": "sum by (command) (rate(holdfast_turns_total[$__rate_interval])) > 0",
      }],
    ],
  ]],
  ["From decision to journal", [
    [
      ["Time of a decision", "s", quantiles("holdfast_decide_seconds"), "One turn of 16 is timed."],
      ["Time of an append", "s", {
        ...quantiles("holdfast_append_seconds"),
        longest: "max(holdfast_append_longest_seconds)",
      }, "What every answer with a change waits for."],
      ["Changes of a batch", "short", quantiles("holdfast_append_changes")],
      [
        "Changes that wait for an append",
        "short",
        { "{{instance}}": "holdfast_append_waiting_changes" },
        "At 100,000 new turns are refused.",
      ],
    ],
  ]],
  ["From journal to tables", [
    [
      [
        "Backlog",
        "short",
        { "{{instance}}": "holdfast_drain_backlog_changes" },
        "At 250,000 changes appends wait.",
      ],
      ["Backlog and journal in characters", "bytes", {
        backlog: "holdfast_drain_backlog_bytes",
        "appended a second": "rate(holdfast_append_bytes_total[$__rate_interval])",
      }],
      ["Backlog age", "s", { "{{instance}}": "holdfast_drain_backlog_age_seconds" }],
      ["Time of a drain", "s", {
        ...quantiles("holdfast_drain_seconds"),
        longest: "max(holdfast_drain_longest_seconds)",
      }],
      ["Changes of a drain", "short", quantiles("holdfast_drain_changes")],
      [
        "Age of the last beat",
        "s",
        { "{{instance}}": "holdfast_beat_age_seconds" },
        "Past 3 seconds nothing is answered.",
      ],
    ],
  ]],
  ["Users in memory", [
    [
      ["Users", "short", { "{{instance}}": "holdfast_actors" }],
      ["Started and let go", "ops", {
        started: "sum(rate(holdfast_actors_started_total[$__rate_interval]))",
        "let go": "sum(rate(holdfast_actors_let_go_total[$__rate_interval]))",
        "hold texts loaded {{instance}}": "rate(holdfast_hold_texts_loaded_total[$__rate_interval])",
      }],
      ["Time of a load", "s", quantiles("holdfast_load_seconds")],
      ["Mailboxes", "short", {
        busy: "holdfast_mailboxes_busy",
        "waiting turns": "holdfast_mailbox_waiting_turns",
      }],
      ["Wait in a mailbox", "s", quantiles("holdfast_mailbox_seconds"), "Of calls that had to wait."],
      ["Counts of refused calls", "short", {
        "{{instance}} rows in memory": "holdfast_refusals_waiting_rows",
        "rows written a second": "sum(rate(holdfast_refusals_written_rows_total[$__rate_interval]))",
        "calls lost in 5 minutes": "sum(increase(holdfast_refusals_lost_total[5m]))",
        "failed requests: rows in memory": "sum(holdfast_failed_requests_waiting_rows)",
        "failed requests: lost in 5 minutes": "sum(increase(holdfast_failed_requests_lost_total[5m]))",
      }],
    ],
  ]],
  ["Sweeps and process", [
    [
      ["Sweeps", "short", {
        "{{sweep}} {{result}}": "sum by (sweep, result) (increase(holdfast_sweeps_total[5m]))",
      }],
      ["Rows swept", "short", {
        "{{sweep}}": "sum by (sweep) (rate(holdfast_sweep_rows_total[$__rate_interval]))",
      }],
      ["Since a sweep finished", "s", {
        "{{sweep}}":
          "(time() - holdfast_sweep_finished_timestamp_seconds) and holdfast_sweep_finished_timestamp_seconds > 0",
      }, "Of each node."],
      ["State and terms", "short", {
        "{{instance}} {{state}}": "holdfast_state == 1",
        "{{instance}} terms": "holdfast_terms_total",
      }],
    ],
    [
      [
        "Processor",
        "short",
        { "{{instance}}": "rate(process_cpu_seconds_total[$__rate_interval])" },
        "1 is one core.",
      ],
      ["Memory", "bytes", {
        "{{instance}} resident": "process_resident_memory_bytes",
        "{{instance}} heap": "process_heap_bytes",
        "texts of holds {{instance}}": "holdfast_hold_text_bytes",
        "of these, of one app": "max(holdfast_hold_text_bytes_of_one_app)",
      }],
      ["Up", "s", { "{{instance}}": "time() - process_start_time_seconds" }],
    ],
  ]],
  ["Nodes and cells", [
    [
      ["Cells", "short", { "{{instance}}": "holdfast_cells" }, "Of 64; each node has its share."],
      ["Nodes and channels", "short", {
        "nodes {{instance}}": "holdfast_members",
        "channels {{instance}}": "holdfast_channels",
      }, "Each node should have a channel to every other one."],
      ["Calls between nodes", "reqps", {
        "passed on": "sum(rate(holdfast_calls_passed_on_total[$__rate_interval]))",
        taken: "sum(rate(holdfast_calls_taken_total[$__rate_interval]))",
        "sent again": "sum(rate(holdfast_calls_sent_again_total[$__rate_interval]))",
      }, "Passed on, taken for others, and sent again after they came back unrun."],
      ["Cells that move", "short", {
        taken: "sum(increase(holdfast_cells_taken_total[5m]))",
        rescued: "sum(increase(holdfast_cells_rescued_total[5m]))",
        "handed over": "sum(increase(holdfast_cells_handed_over_total[5m]))",
        dropped: "sum(increase(holdfast_hand_overs_dropped_total[5m]))",
      }, "Taken, of these from processes that were gone; handed over; dropped."],
    ],
    [
      ["Time of taking and handing over", "s", {
        ...quantiles("holdfast_cell_take_seconds", "take "),
        ...quantiles("holdfast_cell_hand_over_seconds", "hand over "),
      }, "What calls of the cells wait."],
      ["Bytes on channels", "Bps", {
        "{{direction}}": "sum by (direction) (rate(holdfast_channel_bytes_total[$__rate_interval]))",
      }],
      ["Frames on channels, and channels opened, lost, refused", "short", {
        "frames {{direction}}": "sum by (direction) (rate(holdfast_channel_frames_total[$__rate_interval]))",
        "{{event}}": "sum by (event) (increase(holdfast_channel_events_total[5m]))",
      }],
      [
        "Version of the registry",
        "short",
        { "{{instance}}": "holdfast_registry_version" },
        "Equal in all nodes.",
      ],
    ],
    [
      ["Streams of usage", "short", {
        open: "sum(holdfast_streams)",
        "states a second": "sum(rate(holdfast_stream_states_total[$__rate_interval]))",
        "ended a second: {{reason}}":
          "sum by (reason) (rate(holdfast_streams_ended_total[$__rate_interval]))",
        "of one app": "max(holdfast_streams_of_one_app)",
        downloads: "sum(holdfast_downloads)",
        "downloads ended a second: {{end}}":
          "sum by (end) (rate(holdfast_downloads_ended_total[$__rate_interval]))",
        "compose calls": "sum(holdfast_compose_calls)",
        "compose calls of one workspace": "max(holdfast_compose_calls_of_one_workspace)",
      }],
      ["Messages of webhooks", "short", {
        "attempts a second: {{end}}":
          "sum by (end) (rate(holdfast_webhook_attempts_total[$__rate_interval]))",
        "messages a second: {{status}}":
          "sum by (status) (rate(holdfast_webhook_messages_total[$__rate_interval]))",
        "in flight": "sum(holdfast_webhook_messages_in_flight)",
      }],
      ["Pending messages", "short", {
        pending: "sum(holdfast_webhook_messages_pending)",
        "webhooks disabled in 5 min": "sum(increase(holdfast_webhooks_disabled_total[5m]))",
      }],
      ["Oldest pending message", "s", { age: "max(holdfast_webhook_oldest_pending_seconds)" }],
    ],
  ]],
  ["Gateway", [
    [
      ["Calls in flight", "short", {
        calls: "sum(holdfast_gateway_calls)",
        streams: "sum(holdfast_gateway_streams)",
      }, "Calls of the gateway, and those of them that stream."],
      ["Calls by outcome", "ops", {
        "{{outcome}}": "sum by (outcome) (rate(holdfast_gateway_calls_total[$__rate_interval]))",
      }, "left: by their caller; failed: by the model server; estimated: without a report of the usage."],
      [
        "First byte",
        "s",
        quantiles("holdfast_gateway_first_byte_seconds"),
        "From a call of the gateway to the first byte of its answer, the model's time included.",
      ],
      ["Unsettled holds", "short", {
        "{{instance}}": "increase(holdfast_gateway_unsettled_total[$__rate_interval])",
      }, "They expire, and the usage of their calls is not charged."],
    ],
  ]],
  ["Request bodies", [
    [
      [
        "Memory of bodies",
        "bytes",
        { "{{pot}}": "sum by (pot) (holdfast_body_held_bytes)" },
        "Bytes of request bodies in memory, by pot. Keyed: 128 MiB. Keyless: 4 MiB.",
      ],
      ["Bodies refused and ended", "ops", {
        "{{reason}}": "sum by (reason) (rate(holdfast_bodies_refused_total[$__rate_interval]))",
        "{{pot}} full": "sum by (pot) (rate(holdfast_bodies_ended_total[$__rate_interval]))",
      }, "Bodies refused before they were parsed, by reason, and ended because their pot was full."],
      [
        "Large bodies of the gateway",
        "short",
        { bodies: "sum(holdfast_bodies_in_thread)" },
        "Bodies that are read in their thread, or wait for it.",
      ],
      ["Wrong tokens", "ops", {
        "{{answer}}": "sum by (answer) (rate(holdfast_wrong_tokens_total[$__rate_interval]))",
      }, "Wrong tokens of console and admin API, by answer."],
    ],
    [
      [
        "Reads of tables",
        "short",
        {
          "{{instance}} running": "holdfast_reads_running",
          "{{instance}} waiting": "holdfast_reads_waiting",
          "refused in 5 minutes": "sum(increase(holdfast_reads_refused_total[5m]))",
          "calls refused for the drain in 5 minutes": "sum(increase(holdfast_drain_waits_refused_total[5m]))",
        },
        "Reads that run and wait, those refused because too many of their app waited, and calls refused because the tables lagged behind",
      ],
      [
        "Gateway calls read on",
        "short",
        {
          "reading on": "sum(holdfast_gateway_reading_on)",
          "refused in 5 minutes": "sum(increase(holdfast_gateway_read_on_refused_total[5m]))",
        },
        "Calls whose callers have left, read on for their report, and calls that were not because too many were",
      ],
    ],
    [
      [
        "Messages of Stripe",
        "short",
        { "{{result}}": "sum by (result) (increase(holdfast_stripe_messages_total[5m]))" },
        "Messages of Stripe and retries of them, by result: unhandled ones were paid and are not granted yet",
      ],
      [
        "Top-ups",
        "short",
        { "{{result}}": "sum by (result) (increase(holdfast_top_up_looks_total[5m]))" },
        "Looks at top-ups under way, by result: a fault is an app without a key of Stripe, or an answer that Stripe did not give",
      ],
    ],
  ]],
];

/** The median and the 99th percentile of a histogram. */
function quantiles(metric: string, prefix = ""): Lines {
  const quantile = (share: number) =>
    `histogram_quantile(${share}, sum by (le) (rate(${metric}_bucket[$__rate_interval])))`;
  return { [`${prefix}p50`]: quantile(0.5), [`${prefix}p99`]: quantile(0.99) };
}

const DATA_SOURCE = { type: "prometheus", uid: "${datasource}" };
const WIDTH = 24;
const STAT = {
  type: "stat",
  height: 4,
  options: { reduceOptions: { calcs: ["lastNotNull"] }, colorMode: "value" },
};
const TIME_SERIES = {
  type: "timeseries",
  height: 8,
  options: { legend: { displayMode: "list", placement: "bottom" }, tooltip: { mode: "multi" } },
};

/** The dashboard as Grafana imports it. */
export function makeDashboard() {
  return {
    title: "Holdfast",
    uid: "holdfast",
    tags: ["holdfast"],
    schemaVersion: 39,
    version: 3,
    editable: true,
    refresh: "10s",
    time: { from: "now-1h", to: "now" },
    timezone: "browser",
    templating: { list: VARIABLES },
    panels: panelsOf(SECTIONS).map((panel, index) => ({ id: index + 1, ...panel })),
  };
}

const VARIABLES = [
  { name: "datasource", label: "Data source", type: "datasource", query: "prometheus", current: {}, hide: 0 },
  {
    name: "instance",
    label: "Process",
    type: "query",
    datasource: DATA_SOURCE,
    query: { query: "label_values(holdfast_writer, instance)", refId: "instances" },
    refresh: 2,
    includeAll: true,
    multi: true,
    allValue: ".*",
    current: { text: "All", value: "$__all" },
  },
];

/** The sections one below the other, each under its title. */
function panelsOf(sections: readonly Section[]) {
  let y = 0;
  return sections.flatMap(([title, rows], index) => {
    const heading = {
      type: "row",
      title,
      collapsed: false,
      gridPos: { h: 1, w: WIDTH, x: 0, y },
      panels: [],
    };
    y += 1;
    const { height, ...look } = index === 0 ? STAT : TIME_SERIES;
    const panels = rows.flatMap((row) => {
      const w = WIDTH / row.length;
      const shown = row.map((panel, place) => ({
        ...look,
        ...contentOf(panel),
        gridPos: { h: height, w, x: place * w, y },
      }));
      y += height;
      return shown;
    });
    return [heading, ...panels];
  });
}

function contentOf([title, unit, lines, description = ""]: Panel) {
  return {
    title,
    description,
    datasource: DATA_SOURCE,
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    targets: Object.entries(lines).map(([legendFormat, expr], index) => ({
      refId: String.fromCharCode("A".charCodeAt(0) + index),
      expr: ofProcesses(expr),
      legendFormat,
      datasource: DATA_SOURCE,
    })),
  };
}

/** An expression for the chosen processes alone. */
function ofProcesses(expr: string): string {
  return expr.replaceAll(
    /\b((?:holdfast|process)_\w+)(?:\{([^}]*)\})?/g,
    (_, metric: string, labels?: string) =>
      `${metric}{instance=~"$instance"${labels === undefined ? "" : `,${labels}`}}`,
  );
}
