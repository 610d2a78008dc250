-- Features: values by key that replace those of the plan of a subscription.

alter table subscriptions add column custom_features text;
comment on column subscriptions.custom_features is
  'Features that replace those of the plan (JSON): [["key", value], ...]; null for none.';
