-- What plan changes and alerts leave on a counter beside its count. All of it is null on nearly all counters.

alter table counters add column alerted_quota numeric;
alter table counters add column block_filler numeric;
alter table counters add column block_up_to numeric;
alter table counters add column reset_at_ms bigint;
comment on column counters.alerted_quota is
  'The quota with which the percents in alerted were last compared; null without any, and where an older version wrote them.';
comment on column counters.block_filler is
  'What block added up to the quota, beside count, which is usage; null where no block filled the counter.';
comment on column counters.block_up_to is
  'The quota up to which block filled the counter, which shows at least that. Null together with block_filler.';
comment on column counters.reset_at_ms is
  'When a plan change reset the counter: late commits of older holds leave it alone. Null for never, and once usage came from elsewhere.';
