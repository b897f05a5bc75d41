-- name: settled_pairs
-- How many trials of pairs of completions are settled, whichever campaign asked them, by respondent: each pair smaller number first.
select t.respondent, least(t.shown[1], t.shown[2]) one, greatest(t.shown[1], t.shown[2]) other, count(*) trials from trial t
  where t.model_a is not null and t.respondent in (select unnest($respondents::integer[])) and exists (select 1 from verdict v where v.trial = t.id) group by all;

-- name: trials_paid
-- Trials that a campaign made calls for.
select count(distinct trial) from attempt where campaign = $campaign;
