-- name: export_names
select table_name from duckdb_tables() where database_name = current_database() and not internal
  union select view_name from duckdb_views() where database_name = current_database() and not internal order by 1;

-- name: export_attempt
-- Calls with names instead of numbers; the campaign is the one that paid. `*` brings what later schemas add.
select c.name campaign, coalesce(j.name, r.model) judge, r.model judge_model, r.origin, t.id trial, lower(hex(t.trial_key)) trial_key, i.external_id instruction_id, i.category,
  ma.name model_a, mb.name model_b, t.swapped, t.repeat, a.step, a.number, l.name lane, a.sent_at, a.latency_ms,
  case a.fault when 0 then 'none' when 1 then 'transient' when 2 then 'rate_limited' when 3 then 'quota' when 4 then 'authentication' when 5 then 'bad_request'
    when 6 then 'filtered' when 7 then 'too_long' when 8 then 'unanswered' else a.fault::varchar end fault,
  a.* exclude (campaign, trial, step, number, lane, sent_at, latency_ms, fault)
  from attempt a join campaign c on c.id = a.campaign join trial t on t.id = a.trial join respondent r on r.id = t.respondent
  left join campaign_judge j on j.campaign = a.campaign and j.respondent = t.respondent join instruction i on i.id = t.instruction
  left join model ma on ma.id = t.model_a left join model mb on mb.id = t.model_b left join lane l on l.id = a.lane;

-- name: export_plan
select c.name campaign, p.round, p.round >= c.in_force and n.number is not null in_force, p.ordinal, coalesce(j.name, r.model) judge, r.model judge_model, t.id trial,
  lower(hex(t.trial_key)) trial_key, i.external_id instruction_id, i.category, ma.name model_a, mb.name model_b, t.swapped, t.repeat, p.gap
  from plan p join campaign c on c.id = p.campaign left join round n on n.campaign = p.campaign and n.number = p.round join trial t on t.id = p.trial
  join respondent r on r.id = t.respondent left join campaign_judge j on j.campaign = p.campaign and j.respondent = t.respondent
  join instruction i on i.id = t.instruction left join model ma on ma.id = t.model_a left join model mb on mb.id = t.model_b
  order by p.campaign, p.round, p.ordinal;

-- name: export_battle
select * from battle order by campaign, trial, judge;

-- name: export_vote
-- People's votes with their notes, in a form that `venire import votes` takes in.
select * from people_vote order by people, annotator, instruction_id, model_a, model_b, swapped, repeat;

-- name: export_judgment
-- The orders of one battle, judge and repeat as one row: what each says, whether they agree, and the mean verdict, 1 where all is for A, -1 for B; null where none was read.
select * exclude (mean, cost), case when mean > 0 then 'model_a' when mean < 0 then 'model_b' when mean = 0 then 'tie' end winner, mean mean_verdict, cost
  from (select campaign, judge, origin, protocol, instruction_id, category, model_a, model_b, repeat, count(*) orders, count(winner) orders_read,
    any_value(winner) filter (not swapped) winner_a_first, any_value(winner) filter (swapped) winner_b_first, if(count(winner) = 2, count(distinct winner) = 1, null) agreed,
    avg(case winner when 'model_a' then 1 when 'model_b' then -1 when 'tie' then 0 end) mean, coalesce(sum(cost), 0)::bigint cost
    from battle group by campaign, judge, origin, protocol, instruction_id, category, model_a, model_b, repeat)
  order by campaign, instruction_id, judge, model_a, model_b, repeat;

-- name: export_reply
-- What was answered, a row a step, with names instead of numbers.
select c.name campaign, r.role, coalesce(j.name, r.model) judge, r.model judge_model, r.origin, r.protocol, a.trial, i.external_id instruction_id, i.category, ma.name model_a, mb.name model_b,
  t.swapped, t.repeat, a.step, a.sent_at, a.latency_ms, a.served_model, a.finish, a.input_tokens, a.cached_tokens, a.output_tokens, a.reasoning_tokens, a.cost, a.text, a.reasoning
  from reply a join campaign c on c.id = a.campaign join trial t on t.id = a.trial join respondent r on r.id = t.respondent
  left join campaign_judge j on j.campaign = a.campaign and j.respondent = t.respondent join instruction i on i.id = t.instruction
  left join model ma on ma.id = t.model_a left join model mb on mb.id = t.model_b order by c.name, a.trial, a.step;
