-- Requests that are sent together by a provider's batch interface. These tables are only ever added to.
-- A submission is on disk before anything of it is sent; its lines come first, so that one that is there is whole.
-- name: ours, by which the provider's list of batches is searched; lane: the route; digest: of the file that is sent.
create table submission (id bigint not null, campaign integer not null, name varchar not null, lane smallint not null, lines integer not null, bytes bigint not null,
  digest blob not null, reserved bigint not null, reserved_tokens bigint not null, written_at timestamptz not null, batch bigint not null);
-- number: of the attempt that is on record once the line is collected, answered or not.
create table submission_line (submission bigint not null, trial bigint not null, step tinyint not null, number smallint not null, reserved bigint not null,
  reserved_tokens bigint not null, request_digest blob not null, batch bigint not null);
-- kind: sent, looked, cancelling, adopted, mistaken, ended; the last is 'collected' or 'returned'. provider_id: the provider's name of the batch, where known.
create table submission_event (submission bigint not null, happened_at timestamptz not null, kind varchar not null, provider_id varchar, detail varchar not null, batch bigint not null);
create view open_submission as select * from submission s
  where not exists (select 1 from submission_event e where e.submission = s.id and e.kind in ('collected', 'returned'));
