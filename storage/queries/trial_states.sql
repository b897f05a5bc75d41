-- name: last_rows
-- The last trial's number, and the last row numbers of plan and verdict: how far the reads below have to go.
select (select coalesce(max(id), 0) from trial), (select coalesce(max(rowid), -1) from plan), (select coalesce(max(rowid), -1) from verdict);

-- name: planned_between
-- The plan in force, by a range of row numbers.
select p.trial, p.round, p.ordinal from plan p join campaign c on c.id = p.campaign join round r on r.campaign = p.campaign and r.number = p.round
  where p.campaign = $campaign and p.round >= c.in_force and p.rowid between $low and $high;

-- name: settled_between
select trial from verdict where rowid between $low and $high;

-- name: failed_trials
select trial from failed_step;

-- name: respondents_between
select id trial, respondent from trial where id between $low and $high;

-- name: shown_between
-- Trials with the characters of the completions that they show.
select t.id trial, t.respondent, t.instruction, coalesce(sum(c.characters), 0)::bigint shown
  from (select id, respondent, instruction, unnest(if(len(shown) = 0, [null], shown)) completion from trial where id between $low and $high) t
  left join completion c on c.id = t.completion group by all;

-- name: last_attempt
select coalesce(max(rowid), -1) from attempt;

-- name: paid_between
-- What a campaign paid for each respondent in a range of rows: calls, nano-dollars, tokens; what is not known as it was reserved.
select t.respondent, count(*) calls, sum(coalesce(a.cost, a.reserved))::bigint nano,
  sum(case when a.input_tokens is not null then a.input_tokens::bigint + a.output_tokens when a.cost is null or a.fault = 0 then coalesce(a.reserved_tokens, 0) else 0 end)::bigint tokens
  from attempt a join trial t on t.id = a.trial where a.campaign = $campaign and a.rowid between $low and $high group by t.respondent;

-- name: respondent_models
select id, model from respondent;

-- name: imported_files
-- Files that were brought in whole, as JSON.
select detail from event where kind = 'imported';

-- name: settled_in_plan
select count(*) from planned p where p.campaign = $campaign and exists (select 1 from verdict v where v.trial = p.trial);

-- name: battles_planned_between
-- Judgments of the plan in force, by a range of row numbers: who is to judge which two models on what, how often.
select distinct t.model_a, t.model_b, t.instruction, t.respondent, t.repeat
  from plan p join campaign c on c.id = p.campaign join round r on r.campaign = p.campaign and r.number = p.round join trial t on t.id = p.trial
  where p.campaign = $campaign and p.round >= c.in_force and t.model_a is not null and p.rowid between $low and $high;

-- name: trials_between
-- What each trial is, by a range of numbers; no battle has models 0 and 0.
select id trial, respondent, instruction, coalesce(model_a, 0) model_a, coalesce(model_b, 0) model_b, repeat from trial where id between $low and $high;

-- name: settled_pairs
-- How many trials of pairs of completions are settled, whichever campaign asked them, by respondent: each pair smaller number first.
select t.respondent, least(t.shown[1], t.shown[2]) one, greatest(t.shown[1], t.shown[2]) other, count(*) trials from trial t
  where t.model_a is not null and t.respondent in (select unnest($respondents::integer[])) and exists (select 1 from verdict v where v.trial = t.id) group by all;

-- name: trials_paid
-- Trials that a campaign made calls for.
select count(distinct trial) from attempt where campaign = $campaign;

-- name: shard_of_trials
-- The part, from 0, that each trial belongs to where a campaign is divided: by the lowest key of its battle, judge and repeat, and of no number of this store.
select id trial, ('0x' || hex(min(trial_key) over (partition by respondent, instruction, model_a, model_b, repeat, if(model_a is null, id, 0)))[1:15])::bigint % $of part from trial;

-- name: settled_keys
select distinct t.trial_key from verdict v join trial t on t.id = v.trial;

-- name: trials_of_keys
select id from trial where trial_key in (select unnest($keys::blob[]));
