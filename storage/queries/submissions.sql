-- name: last_submission
-- Lines of one that was cut short have no submission, and their number is not used again.
select greatest((select coalesce(max(id), 0) from submission), (select coalesce(max(submission), 0) from submission_line));

-- name: open_submissions
-- Submissions that were not collected or returned: with the provider's latest id and state of them.
select s.id, s.name, s.lane, s.lines, s.bytes, s.reserved, s.reserved_tokens, s.written_at, s.campaign,
  (select arg_max_null(if(e.kind = 'mistaken', null, e.provider_id), e.rowid) from submission_event e where e.submission = s.id and e.kind in ('sent', 'mistaken')) provider_id,
  exists (select 1 from submission_event e where e.submission = s.id and e.kind = 'cancelling') cancelling
  from open_submission s where s.campaign = $campaign order by s.id;

-- name: submission_lines_left
-- Lines of a submission without an attempt on record, in the order written.
select l.trial, t.trial_key, t.respondent, l.step, l.number, l.reserved, l.reserved_tokens, l.request_digest
  from submission_line l join trial t on t.id = l.trial where l.submission = $submission
  and not exists (select 1 from attempt a where a.trial = l.trial and a.step = l.step and a.number = l.number) order by l.rowid;

-- name: open_submission_lines
-- Trials with a line in an open submission that has no attempt on record.
select l.trial from submission_line l join open_submission s on s.id = l.submission where s.campaign = $campaign
  and not exists (select 1 from attempt a where a.trial = l.trial and a.step = l.step and a.number = l.number);

-- name: submissions
-- Every submission of a campaign with what came of it: lines on record, their money, and the last event.
select s.id, s.name, n.name route, s.lines, s.bytes, s.reserved, s.written_at,
  (select count(*) from submission_line l join attempt a on a.trial = l.trial and a.step = l.step and a.number = l.number where l.submission = s.id) collected,
  (select count(*) from submission_line l join attempt a on a.trial = l.trial and a.step = l.step and a.number = l.number where l.submission = s.id and a.fault = 0) answered,
  (select coalesce(sum(coalesce(a.cost, a.reserved)), 0)::bigint from submission_line l join attempt a on a.trial = l.trial and a.step = l.step and a.number = l.number where l.submission = s.id) paid,
  (select arg_max(e.provider_id, e.rowid) from submission_event e where e.submission = s.id and e.provider_id is not null) provider_id,
  (select arg_max(e.kind, e.rowid) from submission_event e where e.submission = s.id) kind,
  (select arg_max(e.detail, e.rowid) from submission_event e where e.submission = s.id) detail,
  (select max(e.happened_at) from submission_event e where e.submission = s.id) happened_at
  from submission s join lane n on n.id = s.lane where s.campaign = $campaign order by s.id;

-- name: settled_among
select distinct trial from verdict where trial in (select unnest($ids));

-- name: submission_answered
select count(*) from submission_line l where l.submission = $submission
  and exists (select 1 from attempt a where a.trial = l.trial and a.step = l.step and a.number = l.number and a.fault = 0);

-- name: known_batches
select distinct provider_id from submission_event where provider_id is not null;

-- name: insert_submission_event
insert into submission_event values ($submission, $now, $kind, $provider_id, $detail, $batch);

-- name: give_up_lines
-- Lines of a submission without an attempt become attempts without an answer, at what was reserved for them.
insert into attempt by name select s.campaign, l.trial, l.step, l.number, s.lane, s.written_at sent_at, 8 fault, 'sent in a batch that its provider does not know any more' message,
  l.reserved, l.reserved_tokens, l.request_digest, $batch batch
  from submission_line l join submission s on s.id = l.submission where l.submission = $submission
  and not exists (select 1 from attempt a where a.trial = l.trial and a.step = l.step and a.number = l.number);
