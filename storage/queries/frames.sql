-- name: battles
-- Verdicts of what is in force as codes: ids of models and instructions, numbers of judges; score is A less B. Battles that show an edited completion are left out.
select t.model_a, t.model_b, t.respondent, t.instruction, t.repeat, t.swapped, v.status, coalesce(v.label, 0)::tinyint label, v.score,
  t.shown[if(t.swapped, 2, 1)] completion_a, t.shown[if(t.swapped, 1, 2)] completion_b
  from planned p join trial t on t.id = p.trial join settled v on v.trial = t.id where p.campaign = $campaign and t.model_a is not null and t.shown[1] not in (select id from completion where variant <> '') and t.shown[2] not in (select id from completion where variant <> '');

-- name: battle_texts
-- Every completion that a battle of a campaign shows.
select id, text from completion where id in (select unnest(t.shown) from planned p join trial t on t.id = p.trial where p.campaign = $campaign and t.model_a is not null);

-- name: edited_completions
-- How many completions are edits: most stores have none, and need not look at every verdict for them.
select count(*) from completion where variant <> '';

-- name: edited_battles
-- Verdicts of what is in force on battles that show edited completions, as in `battles`; variants are of A's and of B's, '' as it came.
select t.model_a, t.model_b, t.respondent, t.instruction, t.repeat, t.swapped, v.status, coalesce(v.label, 0)::tinyint label, v.score, a.variant variant_a, b.variant variant_b
  from planned p join trial t on t.id = p.trial join settled v on v.trial = t.id
  join completion a on a.id = t.shown[if(t.swapped, 2, 1)] join completion b on b.id = t.shown[if(t.swapped, 1, 2)]
  where p.campaign = $campaign and t.model_a is not null and (a.variant <> '' or b.variant <> '');

-- name: grades
-- Verdicts of some judges on single completions of what is in force in some campaigns, each once, of other respondents on some models alone; edited completions are left out.
-- truth is what most people said who labelled the answer, 1 or 0 for correct, -1 where nobody did, or they are divided.
select t.respondent, t.instruction, s.model, t.repeat, v.status, coalesce(v.label, 0)::tinyint label, coalesce(g.truth, -1)::tinyint truth
  from trial t join settled v on v.trial = t.id join completion s on s.id = t.shown[1]
  left join (select completion, case when 2 * count(*) filter (where label = 1) > count(*) then 1 when 2 * count(*) filter (where label = 0) > count(*) then 0 end truth from gold group by completion) g on g.completion = s.id
  where t.model_a is null and len(t.shown) = 1 and s.variant = '' and (t.respondent in (select unnest($respondents::integer[])) or t.respondent in (select unnest($others::integer[])) and s.model in (select id from model where name in (select unnest($models::varchar[]))))
    and t.id in (select trial from planned where campaign in (select unnest($campaigns)));

-- name: instruction_categories
select external_id, category from instruction order by id;

-- name: model_names
select id, name from model order by id;

-- name: instruction_names
select id, external_id from instruction order by id;

-- name: battles_in_time
-- The rows of `battles`, with when the last attempt behind each was sent, in seconds since 1970, and how much longer A's answer is than B's, as a share of both.
select t.model_a, t.model_b, t.respondent, t.instruction, t.repeat, t.swapped, v.status, coalesce(v.label, 0)::tinyint label, v.score, s.told_at,
  t.shown[if(t.swapped, 2, 1)] completion_a, t.shown[if(t.swapped, 1, 2)] completion_b,
  coalesce((ca.characters - cb.characters) / nullif(ca.characters + cb.characters, 0), 0)::double as length
  from planned p join trial t on t.id = p.trial join settled v on v.trial = t.id
  left join (select trial, epoch(max(sent_at)) as told_at from attempt group by trial) s on s.trial = t.id
  left join completion ca on ca.id = t.shown[if(t.swapped, 2, 1)] left join completion cb on cb.id = t.shown[if(t.swapped, 1, 2)]
  where p.campaign = $campaign and t.model_a is not null and t.shown[1] not in (select id from completion where variant <> '') and t.shown[2] not in (select id from completion where variant <> '');

-- name: battles_planned
-- How many verdicts of pairs a campaign is to have, but for those on edited completions.
select count(*) from planned p join trial t on t.id = p.trial where p.campaign = $campaign and t.model_a is not null and t.shown[1] not in (select id from completion where variant <> '') and t.shown[2] not in (select id from completion where variant <> '');

-- name: judged_pairs
-- Verdicts of battles with their replies by step; the winner by its side.
select judge, instruction_id, model_a, model_b, swapped, case winner when 'model_a' then 'a' when 'model_b' then 'b' else winner end,
  coalesce(cost, 0), coalesce((select list(text order by step) from reply where reply.trial = battle.trial), []) from battle;
