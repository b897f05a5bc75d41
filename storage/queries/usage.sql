-- name: instruction_bytes
-- Bytes of what an instruction says, by its number; at most what JSON makes of it.
select id, (strlen(turns) + if($reference, coalesce(strlen(reference), 0), 0))::bigint characters from instruction;

-- name: completion_bytes
select id, strlen(text)::bigint characters from completion;

-- name: pieces_between
-- What the trials of a respondent show, a row for each completion; 0 where there is none.
select id trial, instruction, unnest(if(len(shown) = 0, [0], shown)) completion from trial where id between $low and $high and respondent = $respondent;

-- name: completion_lengths
select id, characters::bigint characters from completion;

-- name: asked_between
-- What some respondents were asked in a range of rows of attempts, by trial; what is not known of a cost as it was reserved.
select a.trial, t.respondent, t.instruction, min(a.step) first_step, count(*) calls, count(*) filter (where a.fault = 0) answered,
  coalesce(sum(a.input_tokens), 0)::bigint input, coalesce(sum(a.cached_tokens), 0)::bigint cached, coalesce(sum(a.output_tokens), 0)::bigint output,
  coalesce(sum(a.reasoning_tokens), 0)::bigint reasoning, coalesce(sum(coalesce(a.cost, a.reserved)) filter (where a.fault <> 0), 0)::bigint unanswered,
  coalesce(sum(coalesce(a.cost, a.reserved)) filter (where a.fault = 0), 0)::bigint paid, coalesce(sum(a.latency_ms) filter (where a.fault = 0), 0)::bigint latency
  from attempt a join trial t on t.id = a.trial where a.rowid between $low and $high and t.respondent in (select unnest($respondents))
  group by a.trial, t.respondent, t.instruction;

-- name: instruction_lengths
-- The second one with the reference answer, which some judges are shown as well.
select id, length(turns) characters, length(turns) + coalesce(length(reference), 0) referenced from instruction;
