-- What calls of the gateway cost, by app and UTC month, for the budget of the app's settings.

create table gateway_spend (
  workspace_id text collate "C" not null,
  app_id text collate "C" not null,
  month text not null,
  cents numeric not null check (cents >= 0),
  primary key (workspace_id, app_id, month)
);
comment on table gateway_spend is 'Cost of committed calls of the gateway, both modes, by UTC month (YYYY-MM).';
