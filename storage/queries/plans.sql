-- name: drop_unfinished_round
-- A round whose planning was cut short has plan rows and no round row.
delete from plan where campaign = $campaign and round not in (select number from round where campaign = $campaign);

-- name: next_round
select coalesce(max(number), 0) + 1 from round where campaign = $campaign;

-- name: stage_trials
create or replace temp table staged_trial (ordinal bigint, trial_key blob, protocol tinyint, respondent smallint, instruction integer, model_a smallint, model_b smallint,
  swapped boolean, shown integer[], repeat smallint, gap float);

-- name: last_trial
select coalesce(max(id), 0) from trial;

-- name: insert_trials
insert into trial select $last + row_number() over (order by ordinal), trial_key, protocol, respondent, instruction, model_a, model_b, swapped, shown, repeat, $batch
  from staged_trial s where not exists (select 1 from trial t where t.trial_key = s.trial_key);

-- name: insert_plan
insert into plan select $campaign, $round, s.ordinal, t.id, s.gap, $batch from staged_trial s join trial t on t.trial_key = s.trial_key order by s.ordinal;

-- name: insert_following_plan
-- Of a round that follows others: what one of them in force plans already is planned once.
insert into plan select $campaign, $round, s.ordinal, t.id, s.gap, $batch from staged_trial s join trial t on t.trial_key = s.trial_key
  where not exists (select 1 from plan o join campaign c on c.id = o.campaign where o.campaign = $campaign and o.trial = t.id and o.round >= c.in_force and o.round < $round)
  order by s.ordinal;

-- name: insert_round
insert into round values ($campaign, $number, $policy, $seed, $trials, $equal_texts, $design, $now, $phase);

-- name: put_in_force
update campaign set in_force = $round where id = $campaign;

-- name: rounds
-- The rounds in force, in order.
select number, coalesce(phase, 'plan'), policy, trials, equal_texts, planned_at::varchar, design from round r join campaign c on c.id = r.campaign where c.id = $campaign and r.number >= c.in_force order by number;

-- name: trials
-- The trials of a chunk, with the numbers of what they are made of; ids between the two bounds first, so that only those row groups are read.
select id, trial_key, respondent, swapped, repeat, instruction, shown from trial
  where id between $low and $high and id in (select unnest($ids));

-- name: instructions_shown
select id, instruction_key, external_id, turns, reference, category from instruction where id in (select unnest($ids));

-- name: completions_shown
select c.id, c.completion_key, m.name, i.external_id, c.text, c.sample, c.variant, c.id in (select completion from suspicion)
  from completion c join model m on m.id = c.model join instruction i on i.id = c.instruction where c.id in (select unnest($ids));

-- name: replies
-- The replies on record of a chunk, in step order. The view `reply` would rank every attempt of the range, texts and all, before it leaves out others.
select trial, step, text, finish, reasoning, coalesce(input_tokens, 0), coalesce(output_tokens, 0), logprobs from attempt
  where fault = 0 and trial between $low and $high and trial in (select unnest($ids))
  qualify row_number() over (partition by trial, step order by number, batch) = 1 order by trial, step;

-- name: attempts
-- How many attempts each step of a chunk has on record, what they cost, and how many were answered.
select trial, step, max(number), sum(coalesce(cost, reserved))::bigint, count(*) filter (where fault = 0)
  from attempt where trial between $low and $high and trial in (select unnest($ids)) group by all;

-- name: answered
-- Trials of which a contestant's own text is on record, and no completion made of it.
select p.trial from planned p join settled v on v.trial = p.trial join trial t on t.id = p.trial
  join campaign_judge j on j.campaign = p.campaign and j.respondent = t.respondent
  where p.campaign = $campaign and v.answered and not exists (select 1 from completion c join model m on m.id = c.model
    where m.name = j.name and c.instruction = t.instruction and c.sample = t.repeat and c.variant = '')
  and not exists (select 1 from completion o join completion e on e.model = o.model and e.instruction = o.instruction and e.sample = o.sample
    where o.id = t.shown[1] and e.variant = j.name) order by p.trial;

-- name: edited_already
-- Edits of which there is a copy that was not asked for here, an instruction of each, and how many.
select j.name, min(i.external_id), count(*) from planned p join trial t on t.id = p.trial join campaign_judge j on j.campaign = p.campaign and j.respondent = t.respondent
  join completion o on o.id = t.shown[1] join completion e on e.model = o.model and e.instruction = o.instruction and e.sample = o.sample and e.variant = j.name
  join instruction i on i.id = t.instruction left join settled v on v.trial = t.id
  where p.campaign = $campaign and v.trial is null group by j.name order by j.name;

-- name: written_already
-- Contestants with an answer that was not asked of them here, and an instruction of each.
select j.name, min(i.external_id), count(*) from planned p join trial t on t.id = p.trial join campaign_judge j on j.campaign = p.campaign and j.respondent = t.respondent
  join model m on m.name = j.name join completion c on c.model = m.id and c.instruction = t.instruction and c.sample = t.repeat and c.variant = ''
  join instruction i on i.id = t.instruction left join settled v on v.trial = t.id
  where p.campaign = $campaign and v.trial is null group by j.name order by j.name;

-- name: answered_routes
-- Routes by which a call was ever answered.
select distinct lane from attempt where fault = 0;

-- name: sent_lately
-- How many calls left by some routes in the last day, by their age in seconds, rounded down: to whole minutes, and to
-- whole seconds of the last two minutes, since a run that goes on would else stand still until the next minute.
-- When a killed run's calls without an answer left is not known (sent_at is its start): not after they were recovered.
with sent as (select sent_at, lane from attempt where not (fault = 8 and latency_ms is null and request_digest = ''::blob)
    union all select l.committed_at, a.lane from attempt a join ledger l on l.batch = a.batch where a.fault = 8 and a.latency_ms is null and a.request_digest = ''::blob),
  aged as (select greatest(0, epoch($now::timestamptz - sent_at)) as age, lane, sent_at from sent)
select if(age < 120, floor(age), floor(age / 60) * 60) as ago, count(*) from aged
  where lane in (select unnest($lanes)) and sent_at > $now::timestamptz - interval 86460 second group by all;

-- name: tokens_lately
-- Tokens in and out of the calls that left by some routes in the last two minutes, by their age in whole seconds; of a call without an answer what was set aside.
with sent as (select lane, sent_at, input_tokens, output_tokens, reserved_tokens from attempt where not (fault = 8 and latency_ms is null and request_digest = ''::blob)
    union all select a.lane, l.committed_at, a.input_tokens, a.output_tokens, a.reserved_tokens from attempt a join ledger l on l.batch = a.batch
      where a.fault = 8 and a.latency_ms is null and a.request_digest = ''::blob),
  aged as (select floor(greatest(0, epoch($now::timestamptz - sent_at))) as ago, * from sent
    where lane in (select unnest($lanes)) and sent_at > $now::timestamptz - interval 120 second)
select ago, sum(coalesce(input_tokens, reserved_tokens, 0))::bigint, sum(coalesce(output_tokens, 0))::bigint from aged group by ago order by ago desc;

-- name: insert_interim
insert into look select $campaign, coalesce(max(number), 0) + 1, $round, $now, $settled, $battles, $verdicts, $nano, $stop, $figures from look where campaign = $campaign;

-- name: interim_analyses
-- What was known of a campaign after the rounds that are in force, in order.
select l.round, l.settled, l.figures from look l join campaign c on c.id = l.campaign where l.campaign = $campaign and l.round >= c.in_force order by l.round, l.number;

-- name: campaign_settings
-- The settings that a campaign's file was last accepted with.
select settings from campaign where id = $campaign;
