-- name: insert_interim
insert into look select $campaign, coalesce(max(number), 0) + 1, $round, $now, $settled, $battles, $verdicts, $nano, $stop, $figures from look where campaign = $campaign;

-- name: interim_analyses
-- What was known of a campaign after the rounds that are in force, in order.
select l.round, l.settled, l.figures from look l join campaign c on c.id = l.campaign where l.campaign = $campaign and l.round >= c.in_force order by l.round, l.number;

-- name: campaign_settings
-- The settings that a campaign's file was last accepted with.
select settings from campaign where id = $campaign;
