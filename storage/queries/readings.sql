-- name: stage_earlier
-- The verdicts that are in force for some campaigns, beside which another reading is put; trials shared by them once.
create or replace temp table earlier_verdict as
  select v.trial, t.respondent, t.model_a is not null battle, r.parser, v.status, v.rule, v.label, v.score, v.criteria, v.places, v.answered, v.flagged, v.cost
  from settled v join trial t on t.id = v.trial left join reading r on r.id = v.reading
  where v.trial in (select trial from planned where campaign in (select unnest($campaigns)));

-- name: stage_verdicts
-- unasked: whether today's protocol would ask a further step, which is not on record.
create or replace temp table read_verdict (trial bigint not null, status tinyint not null, rule varchar not null, label tinyint, score double, criteria float[], places smallint[],
  answered boolean not null, flagged boolean not null, unasked boolean not null);

-- name: drop_earlier
drop table if exists temp.earlier_verdict;

-- name: drop_verdicts
drop table if exists temp.read_verdict;

-- name: trials_to_read
select trial from earlier_verdict order by trial;

-- name: respondents_to_read
select id, model, protocol, options, respondent_key from respondent where id in (select respondent from earlier_verdict) order by id;

-- name: last_faults
-- The steps of a chunk whose last attempt brought no reply, with its fault.
select trial, step, arg_max(fault, number) last_fault from attempt where trial between $low and $high and trial in (select unnest($ids))
  group by all having last_fault <> 0;

-- name: reading_totals
-- Verdicts read, those equal in every column, those of another score alone, those that would be asked once more; and whether all were read by this parser before.
select count(*), count(*) filter (where same_verdict and same_score and same_rule), count(*) filter (where same_verdict and not same_score),
  count(*) filter (where unasked), coalesce(bool_and(parser is not distinct from $parser), true)
  from (select n.unasked, e.parser, e.status = n.status and e.label is not distinct from n.label and e.places is not distinct from n.places same_verdict,
    e.score is not distinct from n.score and e.criteria is not distinct from n.criteria same_score, e.rule = n.rule and e.flagged = n.flagged same_rule from read_verdict n join earlier_verdict e using (trial));

-- name: reading_changes
-- Status and label before and now, where they differ.
select e.battle, e.status, e.label, n.status, n.label, count(*) from read_verdict n join earlier_verdict e using (trial)
  where e.status <> n.status or e.label is distinct from n.label or e.places is distinct from n.places group by all order by count(*) desc, e.battle, e.status, e.label, n.status, n.label;

-- name: reading_rules
select e.rule, n.rule, count(*) from read_verdict n join earlier_verdict e using (trial) where e.rule <> n.rule group by all order by count(*) desc, e.rule, n.rule;

-- name: reading_examples
-- Verdicts that changed: the first of each kind of change, then the second of each, and so on.
with changed as (
  select trial, e.battle, e.status, e.label, n.status new_status, n.label new_label,
    row_number() over (partition by e.battle, e.status, e.label, n.status, n.label order by trial) turn
  from read_verdict n join earlier_verdict e using (trial) where e.status <> n.status or e.label is distinct from n.label or e.places is distinct from n.places
  order by turn, trial limit $limit)
select (select min(cj.name) from campaign_judge cj where cj.respondent = t.respondent and cj.campaign in (select unnest($campaigns))),
  i.external_id, (select coalesce(list(m.name order by s.place), []) from (select unnest(t.shown) completion, generate_subscripts(t.shown, 1) place) s
    join completion o on o.id = s.completion join model m on m.id = o.model), t.repeat, c.battle, c.status, c.label, c.new_status, c.new_label
  from changed c join trial t on t.id = c.trial join instruction i on i.id = t.instruction
  order by c.turn, c.trial;

-- name: append_reading
insert into reading select coalesce(max(id), 0) + 1, $parser, $now from reading;

-- name: keep_reading
-- A verdict for every trial of it, at the cost that it had.
insert into verdict select n.trial, $reading, n.status, n.rule, n.label, n.score, n.criteria, n.places, n.answered, n.flagged, e.cost, $batch from read_verdict n join earlier_verdict e using (trial) order by n.trial;

-- name: asked_respondents
-- How the judges of a campaign were asked, by name.
select cj.name, r.id, r.model, r.protocol, r.origin, r.options, r.respondent_key from campaign_judge cj join respondent r on r.id = cj.respondent
  where cj.campaign = $campaign order by cj.name;

-- name: prompt_texts
-- Every text that any judge of the store was asked with.
select name, text from prompt order by id;

-- name: planned_first
select p.trial from plan p join campaign c on c.id = p.campaign where p.campaign = $campaign and p.round >= c.in_force order by p.round, p.ordinal limit 1;

-- name: planned_number
select trial from planned where campaign = $campaign and trial = $trial;

-- name: planned_key
-- Trials whose key begins so, in hexadecimal digits; two are enough to know that it says too little.
select p.trial from planned p join trial t on t.id = p.trial where p.campaign = $campaign and starts_with(lower(hex(t.trial_key)), $key) limit 2;

-- name: planned_bounds
select count(*), min(trial), max(trial) from planned where campaign = $campaign;

-- name: unsent
-- Trials of a reading under way whose request was counted and not sent, since it would not have fitted.
select trial from earlier_verdict where status = 5 and rule = $rule;
