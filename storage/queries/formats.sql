-- name: judged_verdicts
-- What `encode` reads, from the rows that a dialect found; a model that meets itself says nothing. Verdicts on one showing are numbered as repeats. Few dialects know what people said (human: 1, 0.5 or 0 for A).
create temp table verdict as
  select row_number() over (order by file, row, part) as row, model_a, model_b, coalesce(judge, 'unnamed') as judge, instruction_id, coalesce(swapped, false) as swapped,
    row_number() over (partition by least(model_a, model_b), greatest(model_a, model_b), judge, instruction_id, if(swapped, model_b, model_a) order by file, row, part) as repeat,
    cast(case winner when 'model_a' then 1 when 'model_b' then -1 when 'tie' then 0 when 'both_bad' then 0 end as tinyint) as label,
    coalesce(winner = 'both_bad', false) as both_bad, score, human, swapped is not null as shown, judge is not null as named
  from (select * from found union all by name select null::double as human where false) where model_a <> model_b;

-- name: judged_facts
-- Verdicts, how many name a judge, an instruction, and the order shown, and rows in which a model met itself.
select count(*), count(*) filter (where named), count(instruction_id), count(*) filter (where shown), (select count(*) from found where model_a = model_b) from verdict;

-- name: judged_bad_row
-- The first row without a model, with a winner of no known name, or without the instruction that other rows have.
select file, row, case when coalesce(model_a, '') = '' then 'model_a' when coalesce(model_b, '') = '' then 'model_b' when winner = '?' then 'winner' else 'instruction_id' end as place,
  case when place = 'winner' then word end as word
  from found where coalesce(model_a, '') = '' or coalesce(model_b, '') = '' or winner = '?' or (coalesce(instruction_id, '') = '' and (select count(instruction_id) > 0 from found))
  order by file, row, part limit 1;

-- name: judged_alpaca_eval
-- preference: 1 output_1, 2 output_2, 0 or 1.5 a draw, between them a probability of output_2; null failed.
select file, row, 0 as part, model_a, model_b, winner as word, if(instruction is null, null, left(md5(instruction), 16)) as instruction_id, judge, null::boolean as swapped,
  case when winner is null or isnan(p) then null when p in (0, 1.5) then 'tie' when p >= 1 and p < 1.5 then 'model_a' when p > 1.5 and p <= 2 then 'model_b' else '?' end as winner,
  case when p between 1 and 2 then 3 - 2 * p end as score
  from (select *, try_cast(winner as double) as p from given);

-- name: judged_arena_hard
-- games: the first shows the baseline as A, the second the model; a game or a score may be null, or all of them.
select file, row, game as part, model_a, model_b, score as word, instruction_id, judge, game % 2 = 1 as swapped,
  case when score is null then null when score in ('A=B', 'B=A') then 'tie' when score in ('A>B', 'A>>B', 'B<A', 'B<<A') then if(game % 2 = 1, 'model_b', 'model_a')
    when score in ('B>A', 'B>>A', 'A<B', 'A<<B') then if(game % 2 = 1, 'model_a', 'model_b') else '?' end as winner,
  case when score in ('A=B', 'B=A') then 0 when score like '%>>%' or score like '%<<%' then 2 when score is not null then 1 end * case winner when 'model_b' then -1.0 else 1.0 end as score
  from (select file, row, game, model_a, model_b, instruction_id, judge, g->>'score' as score from
    (select *, unnest(games) as g, unnest(range(1, len(games) + 1)) as game from
      (select *, from_json(if(coalesce(json_array_length(winner), 0) = 0, '[null, null]', winner), '["json"]') as games from given)));

-- name: judged_mt_bench_pairs
-- Game 1 shows model_1 first, game 2 model_2; error is a verdict that was not read.
select file, row, game as part, model_a, model_b, won as word, instruction_id, coalesce(if(judge like '[%' and json_valid(judge), judge->>'$[0]', judge), judge) as judge, game = 2 as swapped,
  case won when 'model_1' then 'model_a' when 'model_2' then 'model_b' when 'tie' then 'tie' when 'error' then null else if(won is null, null, '?') end as winner, null::double as score
  from (select *, winner as won, 1 as game from given union all select *, second as won, 2 as game from given);

-- name: judged_grades
-- Grades of single answers, each pair of models compared under one judge, question and turn; {unparsed} or N/A is a grade that was not read. The last line of an answer counts.
with graded as materialized (
    select file, row, model, instruction_id as question, turn, coalesce(if(judge like '[%' and json_valid(judge), judge->>'$[0]', judge), judge) as judge, nullif(winner, 'N/A') as grade, try_cast(winner as double) as g,
      row_number() over (order by file, row) as number from given qualify row_number() over (partition by model, question, turn, judge order by file desc, row desc) = 1)
select b.file, b.row, a.number as part, a.model as model_a, b.model as model_b, if(b.g is null, b.grade, a.grade) as word, a.question as instruction_id, a.judge, null::boolean as swapped,
  case when (b.grade is not null and b.g is null) or (a.grade is not null and a.g is null) then '?' when a.g = {unparsed} or b.g = {unparsed} or a.g is null or b.g is null then null when abs(a.g - b.g) <= {tied} then 'tie' when a.g > b.g then 'model_a' else 'model_b' end as winner,
  if(a.g = {unparsed} or b.g = {unparsed}, null, a.g - b.g) as score
  from graded a join graded b on a.judge is not distinct from b.judge and a.question = b.question and a.turn is not distinct from b.turn and a.model < b.model;

-- name: judged_chatbot_arena
-- Both bad is kept apart from a tie; a tie that another tool made of two opposite verdicts is a tie.
select file, row, 0 as part, model_a, model_b, winner as word, instruction_id, judge, null::boolean as swapped, null::double as score,
  case when coalesce(winner, '') = '' then null when winner in ('model_a', 'model_b') then winner when winner in ('tie', 'tie (inconsistent)') then 'tie'
    when winner in ('tie (bothbad)', 'both_bad', 'bothbad') then 'both_bad' else '?' end as winner
  from given;

-- name: judged_arena_flags
-- Three columns of 1 and 0 instead of a winner.
select file, row, 0 as part, model_a, model_b, concat_ws(', ', won_a, won_b, tied) as word, instruction_id, judge, null::boolean as swapped, null::double as score,
  case (coalesce(try_cast(won_a as boolean)::int, 0) || '' || coalesce(try_cast(won_b as boolean)::int, 0) || coalesce(try_cast(tied as boolean)::int, 0))
    when '100' then 'model_a' when '010' then 'model_b' when '001' then 'tie' when '000' then null else '?' end as winner
  from given;

-- name: judged_comparia
-- The winner is named; both_equal does not say whether both were good.
select file, row, 0 as part, model_a, model_b, winner as word, instruction_id, judge, null::boolean as swapped, null::double as score,
  case when try_cast(equal as boolean) then 'tie' when coalesce(winner, '') = '' then null when winner = model_a then 'model_a' when winner = model_b then 'model_b' else '?' end as winner
  from given;

-- name: judged_am_elo
-- Words, or the numbers that they stand for there: 1 is model A, 0 is model B.
select file, row, 0 as part, model_a, model_b, winner as word, instruction_id, judge, null::boolean as swapped, null::double as score,
  case when coalesce(winner, '') = '' or isnan(n) then null when winner = 'model_a' or n = 1 then 'model_a' when winner = 'model_b' or n = 0 then 'model_b'
    when winner = 'tie' or n = 0.5 then 'tie' when winner = 'tie (bothbad)' then 'both_bad' else '?' end as winner
  from (select *, try_cast(winner as double) as n from given);

-- name: judged_soft_elo
-- 0 is model A, 1 is model B, within 0.05 of a half a tie; so it is with what people said. Scores are objects of criteria, written as JSON or as Python; the difference is the mean over criteria that both have.
select file, row, 0 as part, model_a, model_b, winner as word, instruction_id, judge, null::boolean as swapped,
  list_avg(list_transform(list_filter(map_keys(a), lambda k: map_contains(b, k)), lambda k: a[k] - b[k])) as score,
  case when coalesce(winner, '') = '' or isnan(p) then null when p between 0 and 1 then case when abs(p - 0.5) <= 0.05 then 'tie' when p < 0.5 then 'model_a' else 'model_b' end else '?' end as winner,
  case when people between 0 and 1 then case when abs(people - 0.5) <= 0.05 then 0.5 when people < 0.5 then 1.0 else 0.0 end end as human
  from (select *, try_cast(winner as double) as p, try_cast(human as double) as people, try_cast(try_cast(replace(scores_a, '''', '"') as json) as map(varchar, double)) as a,
    try_cast(try_cast(replace(scores_b, '''', '"') as json) as map(varchar, double)) as b from given);

-- name: judged_soft_elo_words
-- The winner as a word, and the difference of the scores in one column.
select file, row, 0 as part, model_a, model_b, winner as word, instruction_id, judge, null::boolean as swapped, try_cast(difference as double) as score,
  case when coalesce(winner, '') = '' then null when winner in ('model_a', 'model_b', 'tie') then winner else '?' end as winner,
  case human when 'model_a' then 1.0 when 'tie' then 0.5 when 'model_b' then 0.0 end as human
  from given;

-- name: judged_llm_comparator
-- One verdict a rating; of an example without ratings its own score. A positive score favours A. A row is an example, counted from 1.
with example as (select file, unnest(range(1, len(from_json(examples, '["json"]')) + 1)) as row, unnest(from_json(examples, '["json"]')) as x,
    from_json(models, '["json"]')[1]->>'name' as model_a, from_json(models, '["json"]')[2]->>'name' as model_b from given),
  rated as (select *, coalesce(try_cast(from_json(x->'individual_rater_scores', '["json"]') as json[]), []) as ratings from example),
  score as (select file, row, x, model_a, model_b, unnest(range(1, len(ratings) + 1)) as part, unnest(ratings) as r from rated where len(ratings) > 0
    union all select file, row, x, model_a, model_b, 0, x from rated where len(ratings) = 0)
select file, row, part, model_a, model_b, r->>'score' as word, coalesce(x->'custom_fields'->>'instruction_id', left(md5(x->>'input_text'), 16)) as instruction_id, r->'custom_fields'->>'judge' as judge, try_cast(r->>'is_flipped' as boolean) as swapped,
  case when word is null or isnan(number) then null when number > 0 then 'model_a' when number < 0 then 'model_b' when number = 0 then 'tie' else '?' end as winner, number as score
  from (select *, try_cast(r->>'score' as double) as number from score);

-- name: judged_label_studio
-- One verdict an annotation that was not cancelled. An annotator is a number, or in a full export an object; the instruction is an id or the text in the task's data, else the task.
with annotation as (select file, row, task, data, unnest(from_json(annotations, '["json"]')) as x, unnest(range(1, len(from_json(annotations, '["json"]')) + 1)) as part from given),
  vote as (select *, list_filter(from_json(x->'result', '["json"]'), lambda r: r->>'type' = 'pairwise')[1]->'value'->>'selected' as word from annotation where not coalesce(try_cast(x->>'was_cancelled' as boolean), false))
select file, row, part, data->>'model_a' as model_a, data->>'model_b' as model_b, word,
  coalesce(data->>'instruction_id', data->>'question_id', data->>'prompt_id', data->>'instruction', data->>'prompt', data->>'question', task, cast(row as varchar)) as instruction_id,
  coalesce(x->'completed_by'->>'email', x->'completed_by'->>'id', x->>'completed_by') as judge, false as swapped,
  case coalesce(word, '') when 'left' then 'model_a' when 'right' then 'model_b' when '' then null else '?' end as winner, null::double as score
  from vote;

-- name: judged_preferences
-- The chosen answer won.
select file, row, 0 as part, model_a, model_b, null::varchar as word, coalesce(instruction_id, left(md5(prompt), 16)) as instruction_id, judge, null::boolean as swapped, 'model_a' as winner, null::double as score
  from given;

-- name: judged_label_studio_rows
-- A row of CSV or of JSON_MIN is an annotation; the choice is the tag's value, left or right, alone or in an object or a list of one. Without a choice it was not read.
with vote as (select *, coalesce(if(json_valid(winner) and winner like '[%', winner->'$[0]'->>'selected', if(json_valid(winner) and winner like '{%', winner->>'selected', winner)), '') as word from given)
select file, row, 0 as part, model_a, model_b, word, instruction_id, judge, false as swapped,
  case word when 'left' then 'model_a' when 'right' then 'model_b' when '' then null else '?' end as winner, null::double as score
  from vote;

-- name: judged_judgelm
-- The first line has two scores; anything else was not read.
with line as (select *, string_split_regex(trim(replace(split_part(winner, chr(10), 1), ',', ' ')), '\s+') as parts from given),
  scored as (select *, if(len(parts) = 2, try_cast(parts[1] as double), null) as a, if(len(parts) = 2, try_cast(parts[2] as double), null) as b from line)
select file, row, 0 as part, model_a, model_b, winner as word, instruction_id, judge, false as swapped, a - b as score,
  case when a is null or b is null then null when a > b then 'model_a' when b > a then 'model_b' else 'tie' end as winner
  from scored;

-- name: judged_pandalm
-- One verdict an annotator. Both models are in one text, with one _ between them.
with label as (select *, unnest([winner, second, third]) as word, unnest([1, 2, 3]) as part from given)
select file, row, part, if(len(string_split(key, '_')) = 2, split_part(key, '_', 1), null) as model_a, if(len(string_split(key, '_')) = 2, split_part(key, '_', 2), null) as model_b, word,
  left(md5(instruction || coalesce(chr(10) || chr(10) || nullif(input, ''), '')), 16) as instruction_id, 'annotator ' || part as judge, null::boolean as swapped, null::double as score,
  case lower(word) when '1' then 'model_a' when '2' then 'model_b' when '0' then 'tie' when 'tie' then 'tie' else if(word is null, null, '?') end as winner
  from label where word is not null;

-- name: judged_argilla
-- One verdict a response. A question counts where each of its answers names a side or a tie; of a ranking the first is the winner.
with question as (select *, unnest(json_keys(winner)) as q from given),
  answer as (select *, unnest(from_json(json_extract(winner, '/' || replace(replace(q, '~', '~0'), '/', '~1')), '["json"]')) as x from question),
  worded as (select file, row, q, x->>'user_id' as judge, if(json_type(x, '$.value') = 'ARRAY', x->>'$.value[0]', x->>'value') as word,
    coalesce(metadata->>'model_a', fields->>'model_a') as model_a, coalesce(metadata->>'model_b', fields->>'model_b') as model_b,
    coalesce(fields->>'instruction', fields->>'prompt', fields->>'question', id, cast(row as varchar)) as instruction_id from answer),
  sided as (select *, case when word = model_a then 'model_a' when word = model_b then 'model_b'
    when regexp_replace(lower(word), '[ _-]', '', 'g') in ('modela', 'responsea', 'answera', 'a', '1', 'model1', 'response1', 'answer1', 'left') then 'model_a'
    when regexp_replace(lower(word), '[ _-]', '', 'g') in ('modelb', 'responseb', 'answerb', 'b', '2', 'model2', 'response2', 'answer2', 'right') then 'model_b'
    when lower(word) in ('tie', 'draw', 'equal', 'both', 'same', '0') then 'tie' end as winner from worded)
select file, row, row_number() over (partition by file, row) as part, model_a, model_b, word, instruction_id, judge, null::boolean as swapped, winner, null::double as score
  from sided qualify bool_and(winner is not null) over (partition by q);
