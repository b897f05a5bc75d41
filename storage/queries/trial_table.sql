-- name: make_trial_table
-- One row a planned trial of a campaign, in memory: filters and sorts of a million rows take milliseconds. winner: 1 A, 0 tie, -1 B. flipped: both orders read, with opposite winners. disagree: judges whose orders together prefer different sides. battle: the first trial that shows the same completions.
create or replace table memory.main.{table} as
with rows as (
  select t.id trial, t.respondent, t.instruction, coalesce(t.model_a, s.model) model_a, t.model_b, t.swapped, t.repeat,
    t.shown[if(coalesce(t.swapped, false), 2, 1)] completion_a, t.shown[if(coalesce(t.swapped, false), 1, 2)] completion_b,
    coalesce(v.status, if(f.trial is null, 7, 6))::tinyint status, v.label winner, v.score, coalesce(v.flagged, false) flagged,
    coalesce(a.attempts, 0)::integer attempts, coalesce(a.faults, 0)::integer faults, coalesce(a.cost, 0)::bigint cost, coalesce(a.latency, 0)::integer latency, a.sent_at
  from planned p join trial t on t.id = p.trial left join settled v on v.trial = t.id left join failed_step f on f.trial = t.id
  left join completion s on t.model_a is null and len(t.shown) = 1 and s.id = t.shown[1]
  left join (select trial, count(*) attempts, count(*) filter (where fault <> 0) faults, sum(coalesce(cost, reserved)) cost, sum(latency_ms) latency, max(sent_at) sent_at from attempt group by trial) a on a.trial = t.id
  where p.campaign = $campaign),
pairs as (
  select respondent, instruction, completion_a, completion_b, repeat, count(winner) = 2 and min(winner) = -1 and max(winner) = 1 flipped, avg(winner) winner, min(trial) trial
    from rows where model_b is not null group by all),
sides as (select respondent, instruction, completion_a, completion_b, avg(winner) winner, min(trial) trial from pairs group by all),
battles as (select instruction, completion_a, completion_b, min(winner) < 0 and max(winner) > 0 disagree, min(trial) trial from sides group by all),
others as (select instruction, completion_a, completion_b, min(trial) trial from rows where model_b is null group by all)
select r.*, coalesce(b.trial, o.trial) battle, coalesce(p.flipped, false) flipped, coalesce(b.disagree, false) disagree
  from rows r left join others o on r.model_b is null and o.instruction = r.instruction and o.completion_a is not distinct from r.completion_a and o.completion_b is not distinct from r.completion_b
  left join pairs p on r.model_b is not null and p.respondent = r.respondent and p.instruction = r.instruction and p.completion_a = r.completion_a and p.completion_b = r.completion_b and p.repeat = r.repeat
  left join battles b on r.model_b is not null and b.instruction = r.instruction and b.completion_a = r.completion_a and b.completion_b = r.completion_b order by r.trial;

-- name: trial_table_rows
-- Rows of the table with names; the judge's name is that of the campaign.
select c.trial, j.name judge, d.protocol, i.external_id instruction, i.category, a.name model_a, b.name model_b, c.swapped, c.repeat, {status} status, if(c.status = 0, c.winner, null) winner, c.score,
    c.flipped, c.disagree, c.flagged, c.attempts, c.faults, c.cost, c.latency, c.sent_at, c.instruction instruction_number, c.model_a number_a, c.model_b number_b, c.battle, {key}::double sort_key
  from (select * from memory.main.{table} c where {where} order by {order} limit $limit) c
  join respondent d on d.id = c.respondent left join campaign_judge j on j.campaign = $campaign and j.respondent = c.respondent
  join instruction i on i.id = c.instruction left join model a on a.id = c.model_a left join model b on b.id = c.model_b order by {order};

-- name: trial_table_count
-- How many trials of a filter have each status.
select {status} status, count(*) from memory.main.{table} c where {where} group by all;

-- name: trial_replies
-- Of some trials the beginning of the longest reply, and of those that failed the fault and the message of the last call.
select trial, arg_max(left(text, $characters), length(text)) filter (where fault = 0) reply, arg_max(fault, sent_at) filter (where fault <> 0) fault, arg_max(left(message, $characters), sent_at) filter (where fault <> 0) message
  from attempt where trial in (select unnest($trials::bigint[])) group by trial;

-- name: category_names
select distinct category from instruction where category <> '' order by category;

-- name: trial_table_models
-- Models that any planned trial of the campaign shows.
select id, name from model where id in (select model_a from memory.main.{table} union select model_b from memory.main.{table}) order by name;

-- name: trial_table_judges
select j.name, d.protocol, count(*) from memory.main.{table} c join campaign_judge j on j.campaign = $campaign and j.respondent = c.respondent join respondent d on d.id = c.respondent group by all order by all;

-- name: trial_table_matrix
-- Of each pair of models: wins of A with ties as halves, readable verdicts, and how many were planned.
select c.model_a, c.model_b, coalesce(sum((c.winner + 1) / 2) filter (where c.status = 0), 0), count(*) filter (where c.status = 0), count(*)
  from memory.main.{table} c where c.model_b is not null and {where} group by all order by all;

-- name: trial_table_instructions
-- How the verdicts on each instruction came out: most decisive first.
select i.id, i.external_id, i.category, count(*) filter (where c.status = 0) verdicts, avg(if(c.winner = 0, 1, 0)) filter (where c.status = 0) ties, avg(c.flipped::integer) flips, avg(c.disagree::integer) disagreements, avg(abs(c.winner)) filter (where c.status = 0) decisive
  from memory.main.{table} c join instruction i on i.id = c.instruction where {where} group by all having count(*) filter (where c.status = 0) > 0 order by {order} limit $limit;

-- name: trial_table_opponents
-- How one model did against each opponent.
select m.id, m.name, sum(if(c.model_a = $model, c.winner + 1, 1 - c.winner) / 2) filter (where c.status = 0) wins, count(*) filter (where c.status = 0) verdicts, avg(c.flipped::integer) flips, avg(c.disagree::integer) disagreements
  from memory.main.{table} c join model m on m.id = if(c.model_a = $model, c.model_b, c.model_a) where $model in (c.model_a, c.model_b) and c.model_b is not null group by all order by all;

-- name: trial_table_own_categories
select i.category, sum(if(c.model_a = $model, c.winner + 1, 1 - c.winner) / 2) filter (where c.status = 0) wins, count(*) filter (where c.status = 0) verdicts
  from memory.main.{table} c join instruction i on i.id = c.instruction where $model in (c.model_a, c.model_b) and c.model_b is not null group by all order by all;

-- name: trial_table_answers
-- How one model's answers did, an instruction each, with the beginning of the answer: some after others in an order of a figure.
select r.instruction, i.external_id, i.category, r.wins, r.verdicts, r.trial, left(o.text, $characters) from (
  select c.instruction, sum(if(c.model_a = $model, c.winner + 1, 1 - c.winner) / 2) filter (where c.status = 0 and c.model_b is not null) wins, count(*) filter (where c.status = 0 and c.model_b is not null) verdicts,
      min(c.trial) trial, min(if(c.model_a = $model, c.completion_a, c.completion_b)) completion
    from memory.main.{table} c where $model in (c.model_a, c.model_b) group by all order by {order} limit $limit offset $offset) r
  join instruction i on i.id = r.instruction left join completion o on o.id = r.completion order by {order};

-- name: trial_table_battle
-- Trials that show the same completions of the same instruction, by judge, repeat and order.
select c.trial from memory.main.{table} c, (select instruction, completion_a, completion_b from memory.main.{table} where trial = $trial) o
  where c.instruction = o.instruction and c.completion_a is not distinct from o.completion_a and c.completion_b is not distinct from o.completion_b
  order by c.respondent, c.repeat, c.swapped, c.trial limit $limit;

-- name: trials_in_detail
-- Some trials as they were planned. Their verdicts and failures are read apart: a join of all takes longer to plan than these to read. None of the queries of a battle sorts: a sort takes a millisecond.
select t.id, t.trial_key, t.respondent, j.name, d.model, d.protocol, d.origin, t.instruction, t.swapped, t.repeat, t.shown
  from trial t join respondent d on d.id = t.respondent left join campaign_judge j on j.campaign = $campaign and j.respondent = t.respondent
  where t.id between $low and $high and list_contains($trials::bigint[], t.id);

-- name: verdicts_in_detail
-- All verdicts of some trials, with the number of the reading and the commit.
select trial, status, rule, label, score, criteria, places, flagged, reading, batch from verdict where trial between $low and $high and list_contains($trials::bigint[], trial);

-- name: failures_in_detail
-- Steps of some trials that used up their attempts, or were cleared since.
select trial, cleared, step, fault, batch from failure where list_contains($trials::bigint[], trial);

-- name: models_shown
select o.id, m.name from completion o join model m on m.id = o.model where list_contains($completions::integer[], o.id);

-- name: attempts_in_detail
select a.trial, a.step, a.number, l.name, l.endpoint, a.sent_at, a.latency_ms, a.fault, a.http_status, a.message, a.wait_ms, a.finish, a.input_tokens, a.cached_tokens, a.output_tokens, a.reasoning_tokens, a.reserved, a.cost, a.served_model, a.request_digest, a.text, a.reasoning, a.raw, a.logprobs
  from attempt a left join lane l on l.id = a.lane where a.trial between $low and $high and list_contains($trials::bigint[], a.trial);

-- name: completion_texts
select id, model, variant, sample, text, characters from completion where list_contains($completions::integer[], id);

-- name: suspicions_of
select completion, rule from suspicion where list_contains($completions::integer[], completion);

-- name: instruction_text
select id, external_id, category, turns, reference from instruction where id = $instruction;

-- name: trial_neighbours_near
-- The nearest trials of a filter before and after one, among some that are near: none of some trials.
select arg_max(c.trial, ({key}, c.trial)) filter (where ({key}, c.trial) < ($k_key, $k_trial)), arg_min(c.trial, ({key}, c.trial)) filter (where ({key}, c.trial) > ($k_key, $k_trial)) from memory.main.{table} c where {where} and not list_contains($without::bigint[], c.trial);

-- name: trial_neighbour
-- The first trial of a filter after a place that is none of some trials.
select c.trial from memory.main.{table} c where {where} and not list_contains($without::bigint[], c.trial) order by {order} limit 1;

-- name: trial_sort_key
select {key}::double from memory.main.{table} c where c.trial = $trial;

-- name: attempt_rows
select coalesce(max(rowid) + 1, 0) from attempt;

-- name: search_replies
-- Replies among some rows that hold a text, newest first; trials of the campaign that the filter keeps alone.
select a.rowid, a.trial, a.step, a.number, position($text in lower(a.text)) > 0 in_text, if(position($text in lower(a.text)) > 0, a.text, a.reasoning) found
  from attempt a where a.rowid >= $low and a.rowid < $high and a.fault = 0 and (contains(lower(a.text), $text) or contains(lower(coalesce(a.reasoning, '')), $text))
  and a.trial in (select c.trial from memory.main.{table} c where {where}) order by a.rowid desc limit $limit;

-- name: first_trials
-- The first trial of each of some battles, given by the names of their instruction and models.
select w.instruction, w.model_a, w.model_b, min(c.trial) from (select unnest($instructions::varchar[]) instruction, unnest($models_a::varchar[]) model_a, unnest($models_b::varchar[]) model_b) w
  join instruction i on i.external_id = w.instruction join model a on a.name = w.model_a join model b on b.name = w.model_b
  join memory.main.{table} c on c.instruction = i.id and c.model_a = a.id and c.model_b = b.id group by all;

-- name: trial_table_names
select c.trial, j.name, a.name, b.name from memory.main.{table} c left join campaign_judge j on j.campaign = $campaign and j.respondent = c.respondent
  left join model a on a.id = c.model_a left join model b on b.id = c.model_b where list_contains($trials::bigint[], c.trial);

-- name: search_instructions
select id, external_id, said from (select id, external_id, array_to_string(from_json(turns, '["varchar"]'), chr(10) || chr(10)) said from instruction) where contains(lower(said), $text) order by id limit $limit;

-- name: search_completions
select i.id, i.external_id, m.name, o.text from completion o join instruction i on i.id = o.instruction join model m on m.id = o.model where contains(lower(o.text), $text) order by o.id limit $limit;

-- name: calls_in_time
-- What a campaign's calls did in equal spans of time, by fault: calls, nano-dollars.
select floor(epoch(sent_at) / $seconds)::bigint span, fault, count(*), coalesce(sum(coalesce(cost, reserved)), 0)::bigint from attempt where campaign = $campaign group by all order by all;

-- name: calls_between
select min(epoch(sent_at)), max(epoch(sent_at)), count(*) from attempt where campaign = $campaign;

-- name: trial_table_progress
-- How far each judge is: planned, settled, read, failed, pending, too long, flipped battles in both orders, flagged, trials with a retry, nano-dollars.
select j.name, d.protocol, d.model, d.origin, count(*), count(*) filter (where c.status < 6), count(*) filter (where c.status = 0), count(*) filter (where c.status = 6), count(*) filter (where c.status = 7), count(*) filter (where c.status = 5),
    count(*) filter (where c.flipped) // 2, count(*) filter (where c.flagged), count(*) filter (where c.faults > 0), sum(c.cost)::bigint, coalesce(sum(c.latency) filter (where c.status < 6), 0)::bigint
  from memory.main.{table} c join respondent d on d.id = c.respondent left join campaign_judge j on j.campaign = $campaign and j.respondent = c.respondent group by all order by all;

-- name: trial_table_statuses
select j.name, c.status, count(*) from memory.main.{table} c left join campaign_judge j on j.campaign = $campaign and j.respondent = c.respondent group by all order by all;

-- name: trial_table_agreement
-- Of each two judges: battles that both preferred a side of, both orders together, and how many they preferred the same side of.
with sides as (select c.respondent, c.instruction, c.completion_a, c.completion_b, avg(c.winner) winner from memory.main.{table} c where c.status = 0 and c.model_b is not null group by all having avg(c.winner) <> 0)
select a.name, b.name, count(*), count(*) filter (where sign(s.winner) = sign(t.winner)) from sides s join sides t on s.instruction = t.instruction and s.completion_a = t.completion_a and s.completion_b = t.completion_b and s.respondent <> t.respondent
  join campaign_judge a on a.campaign = $campaign and a.respondent = s.respondent join campaign_judge b on b.campaign = $campaign and b.respondent = t.respondent where a.name < b.name group by all order by all;

-- name: routes_used
-- Each route of a campaign's calls: calls and answers, waits in ms, tokens, nano-dollars, when last.
select l.name, l.provider, l.endpoint, count(*), count(*) filter (where a.fault = 0), coalesce(avg(a.wait_ms), 0), coalesce(avg(a.latency_ms) filter (where a.fault = 0), 0), coalesce(sum(a.input_tokens), 0)::bigint, coalesce(sum(a.output_tokens), 0)::bigint, coalesce(sum(coalesce(a.cost, a.reserved)), 0)::bigint, max(a.sent_at)
  from attempt a join lane l on l.id = a.lane where a.campaign = $campaign group by all order by all;

-- name: route_faults
select l.name, a.fault, count(*) from attempt a join lane l on l.id = a.lane where a.campaign = $campaign and a.fault <> 0 group by all order by all;

-- name: run_events
-- What happened to a campaign's runs, the newest first.
select happened_at, kind, detail from event where campaign = $campaign and kind in ('run started', 'run ended') order by happened_at desc limit $limit;

-- name: page_models
-- Models by number, with a rating known before, and the family.
select id, name, elo, family from model order by id;
