-- name: judged
-- What came of a campaign's settled trials, by judge: how many were read, in each order of a battle, and flagged; and how its battles that were read in both orders went.
with settled_here as (
    select t.respondent, t.instruction, t.model_a, t.model_b, t.swapped, t.repeat, v.status, v.label, v.cost, v.flagged
    from planned p join trial t on t.id = p.trial join settled v on v.trial = t.id where p.campaign = $campaign),
  in_both as (
    select respondent, count(*) battles, count(*) filter (where low = -1 and high = 1) flips
    from (select respondent, min(label) low, max(label) high from settled_here where swapped is not null and status = 0
      group by respondent, instruction, model_a, model_b, repeat having count(*) = 2) group by respondent)
select cj.name, r.protocol, count(*), count(*) filter (where s.status = 0), count(*) filter (where s.status = 5),
  count(*) filter (where not s.swapped), count(*) filter (where not s.swapped and s.status = 0),
  count(*) filter (where s.swapped), count(*) filter (where s.swapped and s.status = 0),
  coalesce(any_value(b.battles), 0), coalesce(any_value(b.flips), 0), count(*) filter (where s.flagged), sum(s.cost)::bigint
  from settled_here s join respondent r on r.id = s.respondent join campaign_judge cj on cj.campaign = $campaign and cj.respondent = s.respondent
  left join in_both b on b.respondent = s.respondent group by cj.name, r.protocol order by cj.name;
