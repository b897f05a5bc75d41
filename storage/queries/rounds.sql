-- name: insert_look
insert into look select $campaign, coalesce(max(number), 0) + 1, $round, $now, $settled, $battles, $verdicts, $nano, $stop, $figures from look where campaign = $campaign;

-- name: looks
-- What was known of a campaign after the rounds that are in force, in order.
select l.round, l.settled, l.figures from look l join campaign c on c.id = l.campaign where l.campaign = $campaign and l.round >= c.in_force order by l.round, l.number;

-- name: completion_lengths
select id, characters::bigint characters from completion;

-- name: paid_of_battles
-- What the settled trials of battles of a campaign cost, by judge.
select cj.name, count(*), sum(v.cost)::bigint from planned p join trial t on t.id = p.trial join settled v on v.trial = t.id
  join campaign_judge cj on cj.campaign = p.campaign and cj.respondent = t.respondent where p.campaign = $campaign and t.model_a is not null group by cj.name;

-- name: settled_in_plan
select count(*) from planned p where p.campaign = $campaign and exists (select 1 from verdict v where v.trial = p.trial);
