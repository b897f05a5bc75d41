-- Battles that show an edited completion are none of the models as they are: they have a view of their own.
-- variant_a and variant_b: how A's and B's completion was edited, '' as it came.
create or replace view battle as
  select c.name campaign, t.id trial, cj.name judge, r.origin, r.protocol, i.external_id instruction_id, i.category, a.name model_a, b.name model_b, t.swapped, t.repeat,
    case v.status when 0 then 'ok' when 1 then 'unreadable' when 2 then 'refused' when 3 then 'truncated' when 4 then 'filtered' when 5 then 'too_long' end status,
    case v.label when 1 then 'model_a' when 0 then 'tie' when -1 then 'model_b' end winner, v.score score_difference, v.criteria, v.flagged, v.cost,
    p.round, coalesce(n.phase, 'plan') phase
  from (select q.campaign, q.trial, min(q.round) round from plan q join campaign f on f.id = q.campaign join round o on o.campaign = q.campaign and o.number = q.round
      where q.round >= f.in_force group by q.campaign, q.trial) p join round n on n.campaign = p.campaign and n.number = p.round
  join campaign c on c.id = p.campaign join trial t on t.id = p.trial join settled v on v.trial = t.id join respondent r on r.id = t.respondent
  join campaign_judge cj on cj.campaign = p.campaign and cj.respondent = r.id join instruction i on i.id = t.instruction
  join model a on a.id = t.model_a join model b on b.id = t.model_b
  where t.shown[1] not in (select id from completion where variant <> '') and t.shown[2] not in (select id from completion where variant <> '');
create view edited_battle as
  select c.name campaign, t.id trial, cj.name judge, r.origin, r.protocol, i.external_id instruction_id, i.category, a.name model_a, b.name model_b, ea.variant variant_a, eb.variant variant_b, t.swapped, t.repeat,
    case v.status when 0 then 'ok' when 1 then 'unreadable' when 2 then 'refused' when 3 then 'truncated' when 4 then 'filtered' when 5 then 'too_long' end status,
    case v.label when 1 then 'model_a' when 0 then 'tie' when -1 then 'model_b' end winner, v.score score_difference, v.criteria, v.flagged, v.cost,
    p.round, coalesce(n.phase, 'plan') phase
  from (select q.campaign, q.trial, min(q.round) round from plan q join campaign f on f.id = q.campaign join round o on o.campaign = q.campaign and o.number = q.round
      where q.round >= f.in_force group by q.campaign, q.trial) p join round n on n.campaign = p.campaign and n.number = p.round
  join campaign c on c.id = p.campaign join trial t on t.id = p.trial join settled v on v.trial = t.id join respondent r on r.id = t.respondent
  join campaign_judge cj on cj.campaign = p.campaign and cj.respondent = r.id join instruction i on i.id = t.instruction
  join model a on a.id = t.model_a join model b on b.id = t.model_b
  join completion ea on ea.id = t.shown[if(t.swapped, 2, 1)] join completion eb on eb.id = t.shown[if(t.swapped, 1, 2)]
  where ea.variant <> '' or eb.variant <> '';
