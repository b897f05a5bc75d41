-- name: asked_between
-- What some respondents were asked in a range of rows of attempts, by trial; what is not known of a cost as it was reserved.
select a.trial, t.respondent, t.instruction, min(a.step) first_step, count(*) calls, count(*) filter (where a.fault = 0) answered,
  coalesce(sum(a.input_tokens), 0)::bigint input, coalesce(sum(a.cached_tokens), 0)::bigint cached, coalesce(sum(a.output_tokens), 0)::bigint output,
  coalesce(sum(a.reasoning_tokens), 0)::bigint reasoning, coalesce(sum(coalesce(a.cost, a.reserved)) filter (where a.fault <> 0), 0)::bigint unanswered,
  coalesce(sum(coalesce(a.cost, a.reserved)) filter (where a.fault = 0), 0)::bigint paid, coalesce(sum(a.latency_ms) filter (where a.fault = 0), 0)::bigint latency
  from attempt a join trial t on t.id = a.trial where a.rowid between $low and $high and t.respondent in (select unnest($respondents))
  group by a.trial, t.respondent, t.instruction;

-- name: battles_planned_between
-- Judgments of the plan in force, by a range of row numbers: who is to judge which two models on what, how often.
select distinct t.model_a, t.model_b, t.instruction, t.respondent, t.repeat
  from plan p join campaign c on c.id = p.campaign join round r on r.campaign = p.campaign and r.number = p.round join trial t on t.id = p.trial
  where p.campaign = $campaign and p.round >= c.in_force and t.model_a is not null and p.rowid between $low and $high;

-- name: trials_between
-- What each trial is, by a range of numbers; no battle has models 0 and 0.
select id trial, respondent, instruction, coalesce(model_a, 0) model_a, coalesce(model_b, 0) model_b, repeat from trial where id between $low and $high;
