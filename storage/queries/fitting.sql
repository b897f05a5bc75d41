-- name: instruction_bytes
-- Bytes of what an instruction says, by its number; at most what JSON makes of it.
select id, (strlen(turns) + if($reference, coalesce(strlen(reference), 0), 0))::bigint characters from instruction;

-- name: completion_bytes
select id, strlen(text)::bigint characters from completion;

-- name: pieces_between
-- What the trials of a respondent show, a row for each completion; 0 where there is none.
select id trial, instruction, unnest(if(len(shown) = 0, [0], shown)) completion from trial where id between $low and $high and respondent = $respondent;

-- name: unsent
-- Trials of a reading under way whose request was counted and not sent, since it would not have fitted.
select trial from earlier_verdict where status = 5 and rule = $rule;

-- name: long_input
-- By judge: trials that were too long, as counted here or as the provider said; trials whose texts were cut, and the most characters cut of one.
with here as (
    select p.trial, t.respondent from planned p join trial t on t.id = p.trial where p.campaign = $campaign),
  ended as (
    select h.respondent, count(*) filter (where v.rule = $rule) unsent, count(*) filter (where v.rule <> $rule) refused
    from here h join settled v on v.trial = h.trial where v.status = 5 group by h.respondent),
  shortened as (
    select respondent, count(*) trials, max(cut) most from (
      select h.respondent, h.trial, max(a.cut) cut from here h join attempt a on a.trial = h.trial where a.cut > 0 group by h.respondent, h.trial) group by respondent)
select cj.name, coalesce(e.unsent, 0), coalesce(e.refused, 0), coalesce(s.trials, 0), coalesce(s.most, 0)
  from campaign_judge cj left join ended e on e.respondent = cj.respondent left join shortened s on s.respondent = cj.respondent
  where cj.campaign = $campaign and (e.respondent is not null or s.respondent is not null) order by cj.name;
