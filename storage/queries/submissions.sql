-- name: last_submission
-- Lines of one that was cut short have no submission, and their number is not used again.
select greatest((select coalesce(max(id), 0) from submission), (select coalesce(max(submission), 0) from submission_line));

-- name: open_submissions
-- Submissions that were not collected or returned: with the provider's latest id and state of them.
select s.id, s.name, s.lane, s.lines, s.bytes, s.reserved, s.reserved_tokens, s.written_at, s.campaign,
  e.provider_id, coalesce(e.last = 'adopted', false) adopted, coalesce(e.cancelling, false) cancelling,
  coalesce(i.readings, 0) short_readings, i.since missing_since
  from open_submission s left join
  (select submission, bool_or(kind = 'cancelling') cancelling,
    arg_max_null(if(kind = 'mistaken', null, provider_id), rowid) filter (kind in ('sent', 'adopted', 'mistaken')) provider_id,
    arg_max(kind, rowid) filter (kind in ('sent', 'adopted', 'mistaken')) last from submission_event group by submission) e
  on e.submission = s.id left join
  (select e.submission, count(*) readings, min(e.happened_at) since from submission_event e where e.kind = 'incomplete'
    and not exists (select 1 from submission_event m where m.submission = e.submission and m.kind = 'mistaken' and m.provider_id = e.provider_id) group by e.submission) i
  on i.submission = s.id where s.campaign = $campaign order by s.id;

-- name: submission_lines_left
-- Lines of a submission without an attempt on record, in the order written.
select l.trial, t.trial_key, t.respondent, l.step, l.number, l.reserved, l.reserved_tokens, l.request_digest
  from submission_line l join trial t on t.id = l.trial where l.submission = $submission
  and not exists (select 1 from attempt a where a.trial = l.trial and a.step = l.step and a.number = l.number) order by l.rowid;

-- name: submission_left
-- The same, in sums by respondent.
select t.respondent, count(*) lines, sum(l.reserved)::bigint reserved, sum(l.reserved_tokens)::bigint reserved_tokens
  from submission_line l join trial t on t.id = l.trial where l.submission = $submission
  and not exists (select 1 from attempt a where a.trial = l.trial and a.step = l.step and a.number = l.number) group by t.respondent;

-- name: submission_lines_taken
-- Lines of a submission with an attempt on record.
select t.trial_key, l.step from submission_line l join trial t on t.id = l.trial where l.submission = $submission
  and exists (select 1 from attempt a where a.trial = l.trial and a.step = l.step and a.number = l.number);

-- name: open_submission_lines
-- Trials with a line in an open submission of any campaign that has no attempt on record.
select l.submission, l.trial from submission_line l join open_submission s on s.id = l.submission
  where not exists (select 1 from attempt a where a.trial = l.trial and a.step = l.step and a.number = l.number);

-- name: submissions
-- Every submission of a campaign with what came of it: lines on record, their money, and the last event.
-- A line that was returned and sent again has the same number: its attempt is known by its time, that of its submission.
select s.id, s.name, n.name route, s.lines, s.bytes, s.reserved, s.written_at,
  coalesce(d.collected, 0) collected, coalesce(d.answered, 0) answered, coalesce(d.paid, 0) paid,
  (select arg_max_null(if(e.kind = 'mistaken', null, e.provider_id), e.rowid) from submission_event e where e.submission = s.id and e.kind in ('sent', 'adopted', 'mistaken')) provider_id,
  (select arg_max(e.kind, e.rowid) from submission_event e where e.submission = s.id) kind,
  (select arg_max(e.detail, e.rowid) from submission_event e where e.submission = s.id) detail,
  (select max(e.happened_at) from submission_event e where e.submission = s.id) happened_at
  from submission s join lane n on n.id = s.lane left join
  (select l.submission, count(*) collected, count(*) filter (where a.fault = 0) answered, sum(coalesce(a.cost, a.reserved))::bigint paid from submission_line l
    join submission o on o.id = l.submission join attempt a on a.trial = l.trial and a.step = l.step and a.number = l.number and a.sent_at = o.written_at group by l.submission) d
  on d.submission = s.id where s.campaign = $campaign order by s.id;

-- name: settled_among
select distinct trial from verdict where trial in (select unnest($ids));

-- name: taken_batches
-- What providers call the batches that a submission cannot be: those of others, and those that turned out to be another.
select distinct e.provider_id from submission_event e where e.provider_id is not null and (
  (e.submission = $submission and e.kind = 'mistaken') or (e.submission <> $submission and e.kind in ('sent', 'adopted')
  and not exists (select 1 from submission_event m where m.submission = e.submission and m.kind = 'mistaken' and m.provider_id = e.provider_id)));

-- name: insert_submission_event
insert into submission_event values ($submission, $now, $kind, $provider_id, $detail, $batch);

-- name: give_up_lines
-- Lines of a submission without an attempt become attempts without an answer, at what was reserved for them.
insert into attempt by name select s.campaign, l.trial, l.step, l.number, s.lane, s.written_at sent_at, 8 fault, 'sent in a batch that was given up' message,
  l.reserved, l.reserved_tokens, l.request_digest, $batch batch
  from submission_line l join submission s on s.id = l.submission where l.submission = $submission
  and not exists (select 1 from attempt a where a.trial = l.trial and a.step = l.step and a.number = l.number);

-- name: merge_open_submissions
select name from open_submission order by id;
