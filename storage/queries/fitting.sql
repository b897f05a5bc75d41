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
-- By judge: trials too long as counted here or as the provider said; those whose texts were cut, and the most characters cut of one. Begins with the few, not with the plan.
with too_long as (
    select trial, status, rule from verdict where trial in (select trial from verdict where status = 5)
      qualify row_number() over (partition by trial order by reading desc, batch desc) = 1),
  found as (
    select trial, rule = $rule unsent, rule <> $rule refused, 0 cut from too_long where status = 5
    union all select trial, false, false, max(cut) from attempt where cut > 0 group by trial)
select cj.name, count(*) filter (where f.unsent), count(*) filter (where f.refused), count(*) filter (where f.cut > 0), max(f.cut)
  from found f join trial t on t.id = f.trial join campaign_judge cj on cj.campaign = $campaign and cj.respondent = t.respondent
  where f.trial in (select p.trial from plan p join campaign c on c.id = p.campaign where p.campaign = $campaign and p.round >= c.in_force)
  group by cj.name order by cj.name;
