-- name: read_campaign
select id, text, settings, in_force from campaign where name = $name;

-- name: campaigns
select id, name, seed, started_at::varchar, in_force is not null from campaign order by id;

-- name: insert_campaign
insert into campaign select coalesce(max(id), 0) + 1, $name, $seed, $text, $settings, null, $now from campaign;

-- name: update_campaign
-- The file changed and the change was accepted: nothing planned before counts any more, unless the plan stays.
update campaign set seed = $seed, text = $text, settings = $settings, in_force = case when $plan_stays then in_force end where id = $campaign;

-- name: insert_respondent
insert into respondent select coalesce(max(id), 0) + 1, $model, $role, $protocol, $options, $respondent_key, $origin from respondent
  having not exists (select 1 from respondent where respondent_key = $respondent_key);

-- name: respondent_id
select id from respondent where respondent_key = $respondent_key;

-- name: clear_judges
delete from campaign_judge where campaign = $campaign;

-- name: insert_judge
insert into campaign_judge values ($campaign, $respondent, $name, $elo, $family);

-- name: registered_judges
-- The judges of a campaign with all that is written of them.
select j.respondent, j.name, r.respondent_key, j.elo, j.family from campaign_judge j join respondent r on r.id = j.respondent where j.campaign = $campaign;

-- name: insert_prompts
-- Those that are not there, by their digests, in the order given.
insert into prompt select (select coalesce(max(id), 0) from prompt) + row_number() over (order by n), name, digest, text
  from (select unnest($names) name, unnest($digests) digest, unnest($texts) text, generate_subscripts($names, 1) n) where digest not in (select digest from prompt);

-- name: prompt_digests
select digest from prompt;

-- name: insert_lane
insert into lane select coalesce(max(id), 0) + 1, $name, $provider, $endpoint from lane having not exists (select 1 from lane where name = $name);

-- name: lane_id
select id from lane where name = $name;

-- name: insert_reading
insert into reading select coalesce(max(id), 0) + 1, $parser, $now from reading having not exists (select 1 from reading where parser = $parser);

-- name: reading_id
-- The newest reading of a parser: what a run reads belongs to it.
select max(id) from reading where parser = $parser;

-- name: judges
select cj.name, r.id, r.model, r.protocol, r.origin, cj.elo, cj.family from campaign_judge cj join respondent r on r.id = cj.respondent where cj.campaign = $campaign order by cj.name;

-- name: spend
select nano, known, unknown, calls, answered, wait_ms, input_tokens, output_tokens, unanswered,
  (select count(*) from attempt where campaign = $campaign and fault <> 0 and cost is null and (reserved > 0 or reserved_tokens > 0)) unanswered_calls,
  (select coalesce(sum(reserved_tokens), 0)::bigint from attempt where campaign = $campaign and fault <> 0 and cost is null) unanswered_tokens
  from spend where campaign = $campaign;

-- name: faults
-- Calls that brought no reply, by class.
select fault, count(*) from attempt where campaign = $campaign and fault <> 0 group by fault order by fault;

-- name: uncounted
-- Answers whose tokens the provider did not count.
select count(*) from attempt where campaign = $campaign and fault = 0 and output_tokens is null;

-- name: last_failure
-- Class and message of the call that was sent last, where it brought no reply.
select fault, message from (select fault, message from attempt where campaign = $campaign order by sent_at desc, number desc limit 1) where fault <> 0;

-- name: failed_steps
-- Steps that used up their attempts, with the models shown in their order and what the last attempt said.
select judge, instruction_id, models, step, fault, message from failed where campaign = (select name from campaign where id = $campaign) order by trial limit $limit;

-- name: failure_reasons
-- What the last attempts of failed steps said, the most frequent first, with how many trials failed so.
select fault, message, count(*) from failed where campaign = (select name from campaign where id = $campaign)
  group by all order by count(*) desc, fault, message limit $limit;

-- name: clear_failures
insert into failure select f.trial, f.step, f.fault, true, $batch from failed_step f join planned p on p.trial = f.trial where p.campaign = $campaign;

-- name: clear_failures_elsewhere
-- Failed steps whose last attempt went by a route that the campaign has no more; replicas of one name are one endpoint,
-- wherever they ran.
insert into failure select f.trial, f.step, f.fault, true, $batch from failed_step f join planned p on p.trial = f.trial
  join (select trial, step, arg_max(lane, (sent_at, number)) lane from attempt where trial in (select trial from failed_step) group by all) a
    on a.trial = f.trial and a.step = f.step join lane l on l.id = a.lane
  where p.campaign = $campaign and l.name not in (select unnest($routes::varchar[])) and l.endpoint not in (select unnest($replicas::varchar[]));

-- name: unanswered
-- Calls without an answer whose cost is not known, and what is set aside for them.
select count(*), coalesce(sum(reserved), 0)::bigint from attempt where campaign = $campaign and fault <> 0 and cost is null and (reserved > 0 or reserved_tokens > 0);

-- name: last_start
-- What was noted when the campaign was last run, and in which commit.
select detail, batch from event where campaign = $campaign and kind = 'run started' order by batch desc limit 1;

-- name: lost_since
-- Calls that had no answer on disk when a run after that commit ended without notice, and are still to be asked again.
select count(*) from attempt a where a.campaign = $campaign and a.batch > $batch and a.message = $message
  and a.trial not in (select trial from verdict) and not exists (select 1 from attempt o where o.trial = a.trial and o.step = a.step and o.fault = 0);

-- name: unanswered_verdict_costs
-- What the trials of these calls cost without what is set aside for them.
update verdict set cost = p.paid from (select a.trial, sum(case when a.cost is not null then a.cost when a.campaign = $campaign and a.fault <> 0 then 0 else a.reserved end)::bigint paid
  from attempt a where a.trial in (select trial from attempt where campaign = $campaign and fault <> 0 and cost is null and reserved > 0) group by a.trial) p
  where verdict.trial = p.trial and verdict.cost <> p.paid;

-- name: release_unanswered
update attempt set reserved = 0, reserved_tokens = 0 where campaign = $campaign and fault <> 0 and cost is null and (reserved > 0 or reserved_tokens > 0);

-- name: attempts_of
-- Which attempts of these trials are on record.
select trial, step, number from attempt where trial in (select unnest($trials));

-- name: attempts_sent
-- When each attempt of these trials was sent: an attempt keeps that, whichever number it is given.
select trial, step, sent_at from attempt where trial in (select unnest($trials));

-- name: first_forecast
-- What was expected when the plan in force was first run.
select e.detail from event e join campaign c on c.id = e.campaign join round r on r.campaign = c.id and r.number = c.in_force
  where e.campaign = $campaign and e.kind = 'forecast' and e.happened_at >= r.planned_at order by e.happened_at limit 1;
