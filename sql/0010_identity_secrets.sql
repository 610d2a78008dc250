-- An app's identity secret can be rotated. Tokens that its users hold were signed with the old one, so an old secret
-- stays valid for a time that the administrator chooses; several rotations can leave several of them.

alter table apps add column old_identity_secrets text not null default '[]';
comment on column apps.old_identity_secrets is
  'JSON list of {"secret", "validUntil"}: earlier identity secrets and the real time, in milliseconds, until which each holds.';
