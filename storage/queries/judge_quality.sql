-- name: served_models
-- Per judge of what is in force: each name under which its replies were served, how many, and when first and last (UTC).
select cj.name, a.served_model, count(*), strftime(min(a.sent_at)::timestamp, '%Y-%m-%dT%H:%MZ'), strftime(max(a.sent_at)::timestamp, '%Y-%m-%dT%H:%MZ')
  from attempt a join planned p on p.trial = a.trial join trial t on t.id = a.trial join campaign_judge cj on cj.campaign = p.campaign and cj.respondent = t.respondent
  where p.campaign = $campaign and a.fault = 0 and a.served_model <> '' group by all order by cj.name, min(a.sent_at), a.served_model;

-- name: served_fingerprints
-- Per judge of what is in force: how many fingerprints came with its replies, and the newest.
select cj.name, count(distinct a.fingerprint), arg_max(a.fingerprint, a.sent_at)
  from attempt a join planned p on p.trial = a.trial join trial t on t.id = a.trial join campaign_judge cj on cj.campaign = p.campaign and cj.respondent = t.respondent
  where p.campaign = $campaign and a.fault = 0 and a.fingerprint <> '' group by cj.name order by cj.name;

-- name: judge_readability
-- What came of a campaign's settled trials, by judge: how many were read, in each order of a battle, and flagged; and how its battles that were read in both orders went.
with settled_here as (
    select t.respondent, t.instruction, list_sort(t.shown) shown, t.swapped, t.repeat, v.status, v.label, v.cost, v.flagged
    from planned p join trial t on t.id = p.trial join settled v on v.trial = t.id where p.campaign = $campaign),
  in_both as (
    select respondent, count(*) battles, count(*) filter (where low = -1 and high = 1) flips
    from (select respondent, min(label) low, max(label) high from settled_here where swapped is not null and status = 0
      group by respondent, instruction, shown, repeat having count(*) = 2) group by respondent)
select cj.name, r.protocol, count(*), count(*) filter (where s.status = 0), count(*) filter (where s.status = 5),
  count(*) filter (where not s.swapped), count(*) filter (where not s.swapped and s.status = 0),
  count(*) filter (where s.swapped), count(*) filter (where s.swapped and s.status = 0),
  coalesce(any_value(b.battles), 0), coalesce(any_value(b.flips), 0), count(*) filter (where s.flagged), sum(s.cost)::bigint
  from settled_here s join respondent r on r.id = s.respondent join campaign_judge cj on cj.campaign = $campaign and cj.respondent = s.respondent
  left join in_both b on b.respondent = s.respondent group by cj.name, r.protocol order by cj.name;

-- name: recent_verdicts
-- Instruction and status of each respondent's last verdicts in force in a campaign, the oldest first.
select respondent, instruction, status from (
    select t.respondent, t.instruction, v.status,
      row_number() over (partition by t.respondent order by v.batch desc, t.id desc) place
    from planned p join trial t on t.id = p.trial join settled v on v.trial = t.id where p.campaign = $campaign)
  where place <= $most order by place desc;

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

-- name: completion_costs
-- Of each contestant that was asked for completions: how many it answered, their nano-dollars, and the standard deviation of these.
select w.name, count(*), sum(v.cost)::bigint, stddev_samp(v.cost) from settled v join trial t on t.id = v.trial join respondent r on r.id = t.respondent and r.protocol = $protocol
  join (select distinct name, respondent from campaign_judge) w on w.respondent = r.id group by all order by all;
