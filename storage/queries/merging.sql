-- Putting stores together. One source store is in use, unqualified; `made` is the new one; maps lead from its numbers to the new ones.

-- name: merge_maps
create temp table map_model (side integer, old smallint, new smallint);
create temp table map_instruction (side integer, old integer, new integer);
create temp table map_completion (side integer, old integer, new integer);
create temp table map_respondent (side integer, old smallint, new smallint);
create temp table map_lane (side integer, old smallint, new smallint);
create temp table map_annotator (side integer, old integer, new integer);
create temp table map_reading (side integer, old integer, new integer);
create temp table map_campaign (side integer, old integer, new integer);
create temp table map_trial (side integer, old bigint, new bigint);
create temp table map_round (side integer, campaign integer, old integer, new integer);
create temp table all_reading (side integer, old integer, parser varchar, made_at timestamptz);
create temp table all_round (side integer, campaign integer, old integer, policy varchar, seed bigint, trials bigint, equal_texts bigint, design varchar, planned_at timestamptz, phase varchar, in_force boolean);
-- occurrence tells attempts apart that are alike in everything: calls that a killed run announced; sent_after is when an attempt or an earlier one of its step
-- was sent, whichever is later: clocks may be set back, numbers go on
create temp table all_attempt (side integer, source bigint, trial bigint, step tinyint, number smallint, sent_after timestamptz, answered boolean, nano bigint, known uhugeint, occurrence bigint, fresh boolean);
create temp table all_verdict (side integer, trial bigint, reading integer, status tinyint, rule varchar, label tinyint, score double, criteria float[], places smallint[], answered boolean, flagged boolean, cost bigint);
create temp table all_failure (side integer, trial bigint, step tinyint, fault tinyint, cleared boolean, committed_at timestamptz);

-- name: merge_models_clash
select m.name, case when m.elo <> o.elo then 'Elo' else 'family' end, coalesce(case when m.elo <> o.elo then o.elo::varchar end, o.family), coalesce(case when m.elo <> o.elo then m.elo::varchar end, m.family)
  from model m join made.model o on o.name = m.name where m.elo <> o.elo or m.family <> o.family order by m.name limit 1;

-- name: merge_models
insert into made.model select (select coalesce(max(id), 0) from made.model) + row_number() over (order by id), name, elo, family from model m
  where not exists (select 1 from made.model o where o.name = m.name);
update made.model set elo = coalesce(made.model.elo, m.elo), family = coalesce(made.model.family, m.family) from model m
  where m.name = made.model.name and (made.model.elo is null and m.elo is not null or made.model.family is null and m.family is not null);
insert into temp.map_model select $side, m.id, o.id from model m join made.model o on o.name = m.name;

-- name: merge_instructions_clash
select i.external_id, o.external_id from instruction i join made.instruction o on (o.external_id = i.external_id) <> (o.instruction_key = i.instruction_key) order by i.external_id limit 1;

-- name: merge_references_clash
select i.external_id from instruction i join made.instruction o on o.instruction_key = i.instruction_key where o.reference <> i.reference order by i.external_id limit 1;

-- name: merge_instructions
update made.instruction set reference = i.reference from instruction i where i.instruction_key = made.instruction.instruction_key and made.instruction.reference is null and i.reference is not null;
insert into made.instruction select (select coalesce(max(id), 0) from made.instruction) + row_number() over (order by id), instruction_key, external_id, category, turns, reference from instruction i
  where not exists (select 1 from made.instruction o where o.instruction_key = i.instruction_key);
insert into temp.map_instruction select $side, i.id, o.id from instruction i join made.instruction o on o.instruction_key = i.instruction_key;

-- name: merge_completions_clash
select m.name, i.external_id from completion c join model m on m.id = c.model join instruction i on i.id = c.instruction
  join temp.map_model mm on mm.side = $side and mm.old = c.model join temp.map_instruction mi on mi.side = $side and mi.old = c.instruction
  join made.completion o on o.instruction = mi.new and o.model = mm.new and o.sample = c.sample and o.variant = c.variant and o.completion_key <> c.completion_key order by 1, 2 limit 1;

-- name: merge_completions
insert into made.completion select (select coalesce(max(id), 0) from made.completion) + row_number() over (order by c.id), c.completion_key, mi.new, mm.new, c.sample, c.variant, c.text, c.characters
  from completion c join temp.map_model mm on mm.side = $side and mm.old = c.model join temp.map_instruction mi on mi.side = $side and mi.old = c.instruction
  where not exists (select 1 from made.completion o where o.completion_key = c.completion_key);
insert into temp.map_completion select $side, c.id, o.id from completion c join made.completion o on o.completion_key = c.completion_key;

-- name: merge_respondents
insert into made.respondent select (select coalesce(max(id), 0) from made.respondent) + row_number() over (order by id), model, role, protocol, options, respondent_key, origin from respondent r
  where not exists (select 1 from made.respondent o where o.respondent_key = r.respondent_key);
insert into temp.map_respondent select $side, r.id, o.id from respondent r join made.respondent o on o.respondent_key = r.respondent_key;
insert into made.prompt select (select coalesce(max(id), 0) from made.prompt) + row_number() over (order by id), name, digest, text from prompt p
  where not exists (select 1 from made.prompt o where o.digest = p.digest);
insert into made.lane select (select coalesce(max(id), 0) from made.lane) + row_number() over (order by id), name, provider, endpoint from lane l
  where not exists (select 1 from made.lane o where o.name = l.name);
insert into temp.map_lane select $side, l.id, o.id from lane l join made.lane o on o.name = l.name;
insert into temp.all_reading select $side, id, parser, made_at from reading;

-- name: merge_campaign_settings
select name, settings from campaign order by id;

-- name: merge_known_settings
select name, settings from made.campaign;

-- name: merge_campaigns
insert into made.campaign select (select coalesce(max(id), 0) from made.campaign) + row_number() over (order by id), name, seed, text, settings, null, started_at from campaign c
  where not exists (select 1 from made.campaign o where o.name = c.name);
update made.campaign set started_at = least(made.campaign.started_at, c.started_at) from campaign c where c.name = made.campaign.name and c.started_at < made.campaign.started_at;
insert into temp.map_campaign select $side, c.id, o.id from campaign c join made.campaign o on o.name = c.name;

-- name: merge_judges_clash
select c.name, j.name from campaign_judge j join campaign c on c.id = j.campaign join temp.map_campaign mc on mc.side = $side and mc.old = j.campaign
  join temp.map_respondent mr on mr.side = $side and mr.old = j.respondent join made.campaign_judge o on o.campaign = mc.new and o.name = j.name and o.respondent <> mr.new order by 1, 2 limit 1;

-- name: merge_judges
insert into made.campaign_judge select mc.new, mr.new, j.name, j.elo, j.family from campaign_judge j join temp.map_campaign mc on mc.side = $side and mc.old = j.campaign
  join temp.map_respondent mr on mr.side = $side and mr.old = j.respondent
  where not exists (select 1 from made.campaign_judge o where o.campaign = mc.new and o.name = j.name) order by j.campaign, j.name;

-- name: merge_same_trials
-- Of the trials of a store, how many have another number, or place, in the new one; and how many there are. Shards of one campaign have them all in common.
select count(*) filter (where t.id is distinct from o.id or t.trial_key is distinct from o.trial_key), count(t.id)
  from trial t positional join (select id, trial_key from made.trial where id <= (select max(id) from trial)) o;

-- name: merge_trials
-- Most of the work is for trials that are new: shards of one campaign have all of them in common.
create or replace temp table new_trial as select t.id from trial t where not exists (select 1 from made.trial o where o.trial_key = t.trial_key);
-- Up to two completions are looked up one by one, longer lists are taken apart and put together.
insert into made.trial select (select coalesce(max(id), 0) from made.trial) + row_number() over (order by t.id), t.trial_key, t.protocol, mr.new, mi.new, ma.new, mb.new, t.swapped,
    case len(t.shown) when 0 then [] when 1 then [s1.new] when 2 then [s1.new, s2.new] else s.shown end, t.repeat, 1
  from trial t join temp.map_respondent mr on mr.side = $side and mr.old = t.respondent join temp.map_instruction mi on mi.side = $side and mi.old = t.instruction
  left join temp.map_model ma on ma.side = $side and ma.old = t.model_a left join temp.map_model mb on mb.side = $side and mb.old = t.model_b
  left join temp.map_completion s1 on s1.side = $side and s1.old = t.shown[1] left join temp.map_completion s2 on s2.side = $side and s2.old = t.shown[2]
  left join (select u.id, list(m.new order by u.place) shown from (select id, unnest(shown) completion, generate_subscripts(shown, 1) place from trial where len(shown) > 2 and id in (from temp.new_trial)) u
    join temp.map_completion m on m.side = $side and m.old = u.completion group by u.id) s on s.id = t.id
  where t.id in (from temp.new_trial) order by t.id;
insert into temp.map_trial select $side, t.id, o.id from trial t join made.trial o on o.trial_key = t.trial_key;

-- name: merge_rounds_of
insert into temp.all_round select $side, mc.new, r.number, r.policy, r.seed, r.trials, r.equal_texts, r.design, r.planned_at, r.phase, coalesce(r.number >= c.in_force, false)
  from round r join campaign c on c.id = r.campaign join temp.map_campaign mc on mc.side = $side and mc.old = r.campaign;

-- name: merge_readings
-- The later a reading was made, the higher its number: the highest is in force.
insert into made.reading select row_number() over (order by min(made_at), parser), parser, min(made_at) from temp.all_reading group by parser;
insert into temp.map_reading select a.side, a.old, o.id from temp.all_reading a join made.reading o on o.parser = a.parser;

-- name: merge_rounds
-- Rounds that are the same in two stores stand here once; those in force come last, those of one store in its order whatever its clock said.
select row_number() over (partition by campaign order by in_force, old, planned_at, side), campaign, side, old, in_force, policy, seed, equal_texts, design, planned_at, phase from
  (select campaign, min(side) side, arg_min(old, side) old, bool_or(in_force) in_force, policy, seed, equal_texts, design, planned_at, phase
    from temp.all_round group by campaign, policy, seed, trials, equal_texts, design, planned_at, phase) order by campaign, 1;

-- name: merge_same_plan
-- Rows of a round that are not those of a round in the new store, one beside the other; of trials that kept their numbers.
select count(*) from (select trial from plan join temp.map_campaign mc on mc.side = $side and mc.old = campaign and mc.new = $campaign where round = $old) p
  positional join (select trial from made.plan where campaign = $campaign and round = $first) o where p.trial is distinct from o.trial;

-- name: merge_plan
-- A trial that another round in force plans already is planned once.
insert into made.plan select $campaign, $number, p.ordinal, mt.new, p.gap, 1 from plan p join temp.map_campaign mc on mc.side = $side and mc.old = p.campaign and mc.new = $campaign
  join temp.map_trial mt on mt.side = $numbers and mt.old = p.trial
  where p.round = $old and not ($in_force and exists (select 1 from made.plan o where o.campaign = $campaign and o.trial = mt.new and o.round >= $first)) order by p.ordinal;

-- name: merge_round
insert into made.round values ($campaign, $number, $policy, $seed, $trials, $equal_texts, $design, $planned_at, $phase);
insert into temp.map_round select side, campaign, old, $number from temp.all_round
  where campaign = $campaign and policy = $policy and seed = $seed and equal_texts = $equal_texts and design = $design and planned_at = $planned_at and phase is not distinct from $phase;

-- name: merge_looks
-- A look that two stores have is one.
insert into made.look by name
  select mr.campaign, coalesce((select max(o.number) from made.look o where o.campaign = mr.campaign), 0) + row_number() over (partition by mr.campaign order by l.number) as number,
    mr.new as round, l.made_at, l.settled, l.battles, l.verdicts, l.nano, l.stop, l.figures
  from look l join temp.map_campaign mc on mc.side = $side and mc.old = l.campaign join temp.map_round mr on mr.side = $side and mr.campaign = mc.new and mr.old = l.round
  where not exists (select 1 from made.look o where o.campaign = mr.campaign and o.round = mr.new and o.made_at = l.made_at and o.figures = l.figures);

-- name: merge_in_force
update made.campaign set in_force = $number where id = $campaign and in_force is null;

-- name: merge_stage_attempts
-- What an attempt is known by is worked out first: windows keep all that they are given in memory, and replies are long.
insert into temp.all_attempt
  with mapped as materialized (select a.rowid source, mt.new trial, a.step, a.number, a.sent_at, a.fault = 0 answered, coalesce(a.cost, a.reserved) nano,
      md5_number(row(mc.new, mt.new, a.step, coalesce(ml.new, -1), epoch_us(a.sent_at), a.latency_ms, a.fault, a.http_status, a.cost, a.input_tokens, a.output_tokens, a.finish, hex(a.request_digest), md5(a.text))::varchar) known
    from attempt a join temp.map_campaign mc on mc.side = $side and mc.old = a.campaign join temp.map_trial mt on mt.side = $numbers and mt.old = a.trial
    left join temp.map_lane ml on ml.side = $side and ml.old = a.lane),
  counted as (select *, max(sent_at) over (partition by trial, step order by number) sent_after, row_number() over (partition by known order by number) occurrence from mapped)
  select $side, source, trial, step, number, sent_after, answered, nano, known, occurrence, true from counted;

-- name: merge_shared_attempts
-- Of an attempt that several stores have, that of the first one counts. All are looked through once, and most stores share none.
create temp table shared as select known, occurrence, min(side) side from temp.all_attempt group by known, occurrence having count(*) > 1;
update temp.all_attempt set fresh = false from temp.shared o
  where o.known = temp.all_attempt.known and o.occurrence = temp.all_attempt.occurrence and o.side < temp.all_attempt.side;

-- name: merge_number_attempts
-- Attempts of a step that come from several stores get new numbers by when they were sent, those of one store in their order.
create temp table placed as select side, source, row_number() over (partition by trial, step order by sent_after, number, side) number from temp.all_attempt
  where fresh and (trial, step) in (select (trial, step) from temp.all_attempt where fresh group by trial, step having count(distinct side) > 1);

-- name: merge_attempts
insert into made.attempt by name select a.* replace (mc.new as campaign, x.trial as trial, coalesce(p.number, a.number) as number, coalesce(ml.new, a.lane) as lane, 1 as batch)
  from attempt a join temp.all_attempt x on x.side = $side and x.fresh and x.source = a.rowid join temp.map_campaign mc on mc.side = $side and mc.old = a.campaign
  left join temp.placed p on p.side = $side and p.source = a.rowid left join temp.map_lane ml on ml.side = $side and ml.old = a.lane;

-- name: merge_stage_verdicts
insert into temp.all_verdict select $side, mt.new, mr.new, v.status, v.rule, v.label, v.score, v.criteria, v.places, v.answered, v.flagged, v.cost
  from verdict v join temp.map_trial mt on mt.side = $numbers and mt.old = v.trial join temp.map_reading mr on mr.side = $side and mr.old = v.reading;
insert into temp.all_failure select $side, mt.new, f.step, f.fault, f.cleared, l.committed_at
  from failure f join temp.map_trial mt on mt.side = $numbers and mt.old = f.trial join ledger l on l.batch = f.batch;
insert into made.event select e.happened_at, mc.new, e.kind, e.detail, 1 from event e left join temp.map_campaign mc on mc.side = $side and mc.old = e.campaign
  where not exists (select 1 from made.event o where o.happened_at = e.happened_at and o.kind = e.kind and o.detail = e.detail and o.campaign is not distinct from mc.new);

-- name: merge_judge_conversations
-- Trials with attempts of several stores, and for each store whether its replies are those in force, and when its last one was sent.
create temp table doubled as select trial, sum(nano)::bigint cost from temp.all_attempt where fresh group by trial having count(distinct side) > 1;
create temp table said as select side, trial, step, known, occurrence, sent_after from temp.all_attempt where answered and trial in (select trial from temp.doubled)
  qualify row_number() over (partition by side, trial, step order by number) = 1;
create temp table in_force as select trial, step, known, occurrence from temp.all_attempt where answered and fresh and trial in (select trial from temp.doubled)
  qualify row_number() over (partition by trial, step order by sent_after, number, side) = 1;
create temp table agreed as select v.side, v.trial, count(s.step) = count(s.step) filter (where f.trial is not null) and count(s.step) = any_value(w.steps) agrees, max(s.sent_after) last_said
  from (select distinct side, trial from temp.all_verdict where trial in (select trial from temp.doubled)) v
  left join temp.said s on s.side = v.side and s.trial = v.trial
  left join temp.in_force f on f.trial = s.trial and f.step = s.step and f.known = s.known and f.occurrence = s.occurrence
  left join (select trial, count(*) steps from temp.in_force group by trial) w on w.trial = v.trial group by v.side, v.trial;

-- name: merge_verdicts
insert into made.verdict select v.trial, v.reading, v.status, v.rule, v.label, v.score, v.criteria, v.places, v.answered, v.flagged, coalesce(d.cost, v.cost), 1
  from temp.all_verdict v left join temp.doubled d on d.trial = v.trial left join temp.agreed a on a.side = v.side and a.trial = v.trial
  qualify row_number() over (partition by v.trial, v.reading order by coalesce(a.agrees, true) desc, a.last_said, v.side) = 1 order by v.trial;

-- name: merge_mixed
-- Settled trials whose replies in force are of no single store that settled them.
select trial from temp.agreed group by trial having not bool_or(agrees) order by trial;

-- name: merge_failures
insert into made.failure select trial, step, fault, cleared, 1 from temp.all_failure f
  where not exists (select 1 from made.verdict v where v.trial = f.trial) and not exists (select 1 from made.attempt a where a.trial = f.trial and a.step = f.step and a.fault = 0)
  qualify row_number() over (partition by trial order by committed_at desc, cleared desc) = 1 order by trial;

-- name: merge_doubles
select count(*) from (select trial, step from made.attempt where fault = 0 group by trial, step having count(*) > 1);

-- name: merge_shared_paid
-- What several stores have on their accounts for one and the same call.
select count(*), coalesce(sum(nano), 0)::bigint from temp.all_attempt where not fresh;

-- name: merge_counts
select (select count(*) from model), (select count(*) from instruction), (select count(*) from completion), (select count(*) from vote), (select count(*) from trial), (select count(*) from plan), (select count(*) from attempt),
  (select count(*) from verdict), (select count(*) from failed_step);

-- name: merge_store_id
update made.store set store_id = $id::uuid;
