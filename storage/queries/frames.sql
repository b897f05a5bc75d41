-- name: battles
-- Verdicts of what is in force as codes: ids of models and instructions, numbers of judges; score is A less B.
select t.model_a, t.model_b, t.respondent, t.instruction, t.repeat, t.swapped, v.status, coalesce(v.label, 0)::tinyint label, v.score,
  t.shown[if(t.swapped, 2, 1)] completion_a, t.shown[if(t.swapped, 1, 2)] completion_b
  from planned p join trial t on t.id = p.trial join settled v on v.trial = t.id where p.campaign = $campaign and t.model_a is not null;

-- name: battle_texts
-- Every completion that a battle of a campaign shows.
select id, text from completion where id in (select unnest(t.shown) from planned p join trial t on t.id = p.trial where p.campaign = $campaign and t.model_a is not null);

-- name: model_names
select id, name from model order by id;

-- name: instruction_names
select id, external_id from instruction order by id;
