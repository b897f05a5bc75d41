-- name: last_rows
-- The last trial's number, and the last row numbers of plan and verdict: how far the reads below have to go.
select (select coalesce(max(id), 0) from trial), (select coalesce(max(rowid), -1) from plan), (select coalesce(max(rowid), -1) from verdict);

-- name: planned_between
-- The plan in force, by a range of row numbers.
select p.trial, p.round, p.ordinal from plan p join campaign c on c.id = p.campaign join round r on r.campaign = p.campaign and r.number = p.round
  where p.campaign = $campaign and p.round >= c.in_force and p.rowid between $low and $high;

-- name: settled_between
select trial from verdict where rowid between $low and $high;

-- name: failed_trials
select trial from failed;

-- name: respondents_between
select id trial, respondent from trial where id between $low and $high;

-- name: shown_between
-- Trials with the characters of the completions that they show.
select t.id trial, t.respondent, t.instruction, coalesce(sum(c.characters), 0)::bigint shown
  from (select id, respondent, instruction, unnest(if(len(shown) = 0, [null], shown)) completion from trial where id between $low and $high) t
  left join completion c on c.id = t.completion group by all;

-- name: last_attempt
select coalesce(max(rowid), -1) from attempt;

-- name: paid_between
-- What a campaign paid for each respondent in a range of rows: calls, nano-dollars, tokens; what is not known as it was reserved.
select t.respondent, count(*) calls, sum(coalesce(a.cost, a.reserved))::bigint nano,
  sum(case when a.input_tokens is not null then a.input_tokens::bigint + a.output_tokens when a.cost is null or a.fault = 0 then coalesce(a.reserved_tokens, 0) else 0 end)::bigint tokens
  from attempt a join trial t on t.id = a.trial where a.campaign = $campaign and a.rowid between $low and $high group by t.respondent;

-- name: respondent_models
select id, model from respondent;

-- name: instruction_lengths
-- The second one with the reference answer, which some judges are shown as well.
select id, length(turns) characters, length(turns) + coalesce(length(reference), 0) referenced from instruction;

-- name: imported_files
-- Files that were brought in whole, as JSON.
select detail from event where kind = 'imported';
