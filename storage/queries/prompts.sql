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
