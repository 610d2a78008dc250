-- Compose: what models generated for users, without prompts and answers, and what workspaces spent on models.

create table generations (
  id text collate "C" primary key,
  user_key bigint not null,
  realm integer not null,
  type text not null,
  model text not null,
  input_tokens bigint not null check (input_tokens >= 0),
  output_tokens bigint not null check (output_tokens >= 0),
  cost_cents numeric not null check (cost_cents >= 0),
  event_id text collate "C" not null,
  at_ms bigint not null
);
comment on table generations is 'Generations of compose types; their texts stand in event_logs, where those are kept.';
create index generations_user on generations (user_key);

create table ai_spend (
  workspace_id text collate "C" not null,
  month text not null,
  cents numeric not null check (cents >= 0),
  primary key (workspace_id, month)
);
comment on table ai_spend is 'Cost of all usage that models reported, both modes, by UTC month (YYYY-MM).';
