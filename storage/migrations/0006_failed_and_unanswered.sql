-- The view failed for people: what failed, where, and what the last attempt said. failed_step is what it was before.
create view failed_step as select trial, step, fault from failure qualify row_number() over (partition by trial order by batch desc, cleared desc) = 1 and not cleared;
create or replace view missing as select p.campaign, p.round, p.ordinal, p.trial from plan p join campaign c on c.id = p.campaign
  join round r on r.campaign = p.campaign and r.number = p.round where p.round >= c.in_force and not exists (select 1 from verdict v where v.trial = p.trial) and not exists (select 1 from failed_step f where f.trial = p.trial);
-- One row a failed trial of a campaign; models in the order shown.
create or replace view failed as
  select c.name campaign, t.id trial, cj.name judge, i.external_id instruction_id,
    (select coalesce(list(m.name order by s.place), []) from (select unnest(t.shown) completion, generate_subscripts(t.shown, 1) place) s
      join completion o on o.id = s.completion join model m on m.id = o.model) models, f.step,
    case f.fault when 1 then 'transient' when 2 then 'rate_limited' when 3 then 'quota' when 4 then 'authentication' when 5 then 'bad_request' when 6 then 'filtered'
      when 7 then 'too_long' when 8 then 'unanswered' end fault, a.http_status, a.message, a.number attempts, a.sent_at
  from failed_step f join planned p on p.trial = f.trial join campaign c on c.id = p.campaign join trial t on t.id = f.trial
  join campaign_judge cj on cj.campaign = p.campaign and cj.respondent = t.respondent join instruction i on i.id = t.instruction
  left join (select trial, step, http_status, message, number, sent_at from attempt where trial in (select trial from failed_step)
    qualify row_number() over (partition by trial, step order by number desc) = 1) a on a.trial = f.trial and a.step = f.step;
-- unanswered: of unknown, what is set aside for calls without an answer.
create or replace view spend as select campaign, coalesce(sum(coalesce(cost, reserved)), 0)::bigint nano, coalesce(sum(cost), 0)::bigint known,
  coalesce(sum(reserved) filter (where cost is null), 0)::bigint unknown, count(*) calls, count(*) filter (where fault = 0) answered, coalesce(sum(wait_ms), 0)::bigint wait_ms,
  coalesce(sum(input_tokens), 0)::bigint input_tokens, coalesce(sum(output_tokens), 0)::bigint output_tokens,
  coalesce(sum(reserved) filter (where cost is null and fault <> 0), 0)::bigint unanswered from attempt group by campaign;
