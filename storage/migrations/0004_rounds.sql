-- Plans in phases and rounds, and what was known after each round.
-- phase: the part of the plan that a round belongs to; null of rounds that were planned before there were phases: "plan".
alter table round add column phase varchar;
-- One row a look at a campaign: after a round (its number), and at the end. settled: trials that had a verdict by then.
-- stop: the sentence that says why no more is planned, null: go on. figures: the whole look as JSON.
create table look (campaign integer not null, number integer not null, round integer not null, made_at timestamptz not null, settled bigint not null,
  battles bigint not null, verdicts bigint not null, nano bigint not null, stop varchar, figures varchar not null, primary key (campaign, number));
-- round and phase: of the first round in force that planned the trial.
create or replace view battle as
  select c.name campaign, t.id trial, cj.name judge, r.origin, r.protocol, i.external_id instruction_id, i.category, a.name model_a, b.name model_b, t.swapped, t.repeat,
    case v.status when 0 then 'ok' when 1 then 'unreadable' when 2 then 'refused' when 3 then 'truncated' when 4 then 'filtered' when 5 then 'too_long' end status,
    case v.label when 1 then 'model_a' when 0 then 'tie' when -1 then 'model_b' end winner, v.score score_difference, v.criteria, v.flagged, v.cost,
    p.round, coalesce(n.phase, 'plan') phase
  from (select q.campaign, q.trial, min(q.round) round from plan q join campaign f on f.id = q.campaign join round o on o.campaign = q.campaign and o.number = q.round
      where q.round >= f.in_force group by q.campaign, q.trial) p join round n on n.campaign = p.campaign and n.number = p.round
  join campaign c on c.id = p.campaign join trial t on t.id = p.trial join settled v on v.trial = t.id join respondent r on r.id = t.respondent
  join campaign_judge cj on cj.campaign = p.campaign and cj.respondent = r.id join instruction i on i.id = t.instruction
  join model a on a.id = t.model_a join model b on b.id = t.model_b;
