-- What an event was charged with, in full: beside its lines now also what credits paid of it. Events of before show
-- their lines alone. And how a user came to the plan in force: a merge must know whether the counters of that plan
-- contain what was used under the plan before. For users of before that is taken to be so: what they had left behind
-- by a plan change is 0, and the next plan change says it anew.

alter table events add column credits text not null default '[]';
comment on column events.credits is 'What credits paid (JSON): [[balanceId, unit, "taken"], ...].';

alter table users add column plan_carried boolean not null default true;
comment on column users.plan_carried is 'Whether the counters of the plan entered last contain what was used under the one before.';
