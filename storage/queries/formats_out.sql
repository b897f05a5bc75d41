-- name: written_battles
-- Verdicts with their texts and what the judge wrote; of one campaign, where `campaign_name` says which.
create or replace temp view written as
  select b.campaign, b.trial, b.judge, b.protocol, b.instruction_id, b.category, b.model_a, b.model_b, b.swapped, b.repeat, b.status, b.winner, i.turns, i.reference,
    ca.text as text_a, cb.text as text_b, r.reasons, r.judgment, r.answered_at,
    array_to_string(from_json(i.turns, '["varchar"]'), chr(10) || chr(10)) as prompt
  from battle b join trial t on t.id = b.trial join instruction i on i.id = t.instruction
  join completion ca on ca.id = t.shown[if(b.swapped, 2, 1)] join completion cb on cb.id = t.shown[if(b.swapped, 1, 2)]
  left join (select trial, arg_min(text, step) as reasons, string_agg(text, chr(10) || chr(10) order by step) as judgment, max(sent_at) as answered_at from reply group by trial) r
    on r.trial = b.trial
  where getvariable('campaign_name') is null or b.campaign = getvariable('campaign_name');

-- name: written_judgments
-- The orders of one battle, judge and repeat side by side; total is positive where A is favoured.
create or replace temp view written_judgment as
  select campaign, judge, protocol, instruction_id, category, model_a, model_b, repeat, any_value(turns) as turns, any_value(reference) as reference, any_value(prompt) as prompt,
    any_value(text_a) as text_a, any_value(text_b) as text_b, count(*) as orders, count(winner) as read, max(answered_at) as answered_at,
    coalesce(sum(case winner when 'model_a' then 1 when 'model_b' then -1 else 0 end), 0) as total,
    any_value(winner) filter (not swapped) as a_first, any_value(winner) filter (swapped) as b_first, bool_or(not swapped) as has_a_first, bool_or(swapped) as has_b_first,
    any_value(judgment) filter (not swapped) as a_first_text, any_value(judgment) filter (swapped) as b_first_text
  from written group by campaign, judge, protocol, instruction_id, category, model_a, model_b, repeat;

-- name: written_answers
-- First answers with their turns; an answer to several turns comes apart at its headings.
create or replace temp view written_answer as
  select m.name as model, i.external_id as instruction_id, i.category, i.turns as asked, c.sample, c.text,
    if(n > 1 and starts_with(c.text, '[turn 1]' || chr(10)) and len(parts) = n, parts, [c.text]) as turns
  from (select *, (select len(from_json(x.turns, '["varchar"]')) from instruction x where x.id = o.instruction) as n,
      regexp_split_to_array(substr(o.text, 10), '\n\n\[turn \d+\]\n') as parts from completion o where o.variant = '') c
  join model m on m.id = c.model join instruction i on i.id = c.instruction;

-- name: written_models
select distinct model from written_answer order by 1;

-- name: written_pairs
select distinct model_a, model_b from written order by all;

-- name: written_judges
select distinct judge from written order by 1;

-- name: written_contestants
select distinct unnest([model_a, model_b]) from written order by 1;

-- name: written_judged_models
-- Who was judged against a baseline by this judge: the model that met all others is the baseline, else the first of each pair.
select distinct if(model_a = baseline, model_b, if(model_b = baseline, model_a, model_b)) from
  (select *, (select model from (select model_a as model, model_b as other from written union select model_b, model_a from written) group by model
    having count(*) = (select count(distinct model) - 1 from (select model_a as model from written union select model_b from written)) order by model limit 1) as baseline from written)
  where judge = getvariable('written_judge') order by 1;

-- name: write_preferences
-- Pairs of answers of which one was chosen, by more of the selected judges than the other; their mean verdict, the margin, has to favour it too. agreed: judgments whose two
-- orders say the same count, and more than half of their judges name it; decided: all that were read count; every: each verdict is a pair by itself.
with selected as (select * from written where getvariable('written_judges') is null or list_contains(getvariable('written_judges'), judge)),
  counted as (select * from written_judgment where if(getvariable('written_keep') = 'decided', read > 0, a_first = b_first)
    and (getvariable('written_judges') is null or list_contains(getvariable('written_judges'), judge))),
  said as (select campaign, instruction_id, model_a, model_b, judge, any_value(category) as category, any_value(prompt) as prompt, any_value(text_a) as text_a, any_value(text_b) as text_b,
    sign(sum(sign(total))) as vote, sum(total) as total, sum(read) as read from counted group by campaign, instruction_id, model_a, model_b, judge),
  voted as (select campaign, instruction_id, model_a, model_b, any_value(category) as category, any_value(prompt) as prompt, any_value(text_a) as text_a, any_value(text_b) as text_b,
    sum(total) / sum(read) as lead, count_if(vote > 0) - count_if(vote < 0) as votes, votes > 0 as a_won, greatest(count_if(vote > 0), count_if(vote < 0)) / count(*) as agreement,
    string_agg(judge, ', ' order by judge) as judges from said group by campaign, instruction_id, model_a, model_b),
  sole as (select campaign, if(count(distinct judge) = 1, min(judge), 'majority') as judge from selected group by campaign),
  decided as (select v.*, s.judge, 0 as ordinal, if(a_won, lead, -lead) as margin from voted v join sole s using (campaign)
      where getvariable('written_keep') <> 'every' and votes <> 0 and (agreement > 0.5 or getvariable('written_keep') = 'decided') and if(a_won, lead, -lead) > 0
    union all by name select campaign, instruction_id, model_a, model_b, category, prompt, text_a, text_b, judge, judge as judges, trial as ordinal, winner = 'model_a' as a_won, 1.0 as margin,
      1.0 as agreement from selected where winner in ('model_a', 'model_b') and getvariable('written_keep') = 'every')
select prompt, if(a_won, text_a, text_b) as chosen, if(a_won, text_b, text_a) as rejected, margin, if(a_won, model_a, model_b) as chosen_model, if(a_won, model_b, model_a) as rejected_model,
  judge, judges, agreement, instruction_id, category, campaign from decided where text_a <> text_b order by campaign, instruction_id, model_a, model_b, ordinal

-- name: preference_orders
-- Judgments of the selected judges, and those among them that have both orders, both read, both with one outcome, and with a winner.
select count(*), count_if(orders = 2), count_if(read = 2), count_if(a_first = b_first), count_if(a_first = b_first and total <> 0), count_if(total <> 0) from written_judgment
  where getvariable('written_judges') is null or list_contains(getvariable('written_judges'), judge)

-- name: write_preferences_messages
select [{'role': 'user', 'content': prompt}] as prompt, [{'role': 'assistant', 'content': chosen}] as chosen, [{'role': 'assistant', 'content': rejected}] as rejected,
  * exclude (prompt, chosen, rejected) from ({pairs})

-- name: write_alpaca_outputs
select category as dataset, array_to_string(from_json(asked, '["varchar"]'), chr(10) || chr(10)) as instruction, text as output, model as generator from written_answer
  where model = getvariable('written_model') and sample = 1 order by instruction_id

-- name: write_alpaca_leaderboard
-- Each instruction counts once for a model: the mean of what the selected judges said in either order, 1 for the model, 0 for the baseline.
with met as (select if(model_a = getvariable('written_baseline'), model_b, model_a) as model, instruction_id,
    avg(case winner when 'tie' then 0.5 when if(model_a = getvariable('written_baseline'), 'model_b', 'model_a') then 1.0 else 0.0 end) as p
    from written where winner is not null and getvariable('written_baseline') in (model_a, model_b)
      and (getvariable('written_judges') is null or list_contains(getvariable('written_judges'), judge)) group by 1, 2),
  lengths as (select model, avg(length(text)) as mean_length from written_answer where sample = 1 group by model)
select model, 100 * avg(p) as win_rate, 100 * stddev_samp(p) / sqrt(count(*)) as standard_error, count_if(p > 0.5) as n_wins, count_if(p < 0.5) as n_wins_base, count_if(p = 0.5) as n_draws,
  count(*) as n_total, 100 * (count_if(p > 0.5) + 0.5 * count_if(p = 0.5)) / count(*) as discrete_win_rate, 'community' as mode, any_value(floor(mean_length)::bigint) as avg_length
  from met join lengths using (model) group by model order by win_rate desc, model

-- name: written_baselines
-- Models that met all others.
select model from (select model_a as model, model_b as other from written union select model_b, model_a from written) group by model
  having count(*) = (select count(distinct model) - 1 from (select model_a as model from written union select model_b from written)) order by model

-- name: write_alpaca_annotations
-- One verdict a row; output_1 was shown first.
select prompt as instruction, if(swapped, text_b, text_a) as output_1, if(swapped, model_b, model_a) as generator_1, if(swapped, text_a, text_b) as output_2,
  if(swapped, model_a, model_b) as generator_2, category as dataset, judge as annotator,
  case winner when 'tie' then 1.5 when if(swapped, 'model_b', 'model_a') then 1.0 when if(swapped, 'model_a', 'model_b') then 2.0 end as preference, judgment as raw_completion
  from written order by trial

-- name: write_arena_hard_questions
select external_id as uid, category, category as subcategory, array_to_string(from_json(turns, '["varchar"]'), chr(10) || chr(10)) as prompt from instruction order by id

-- name: write_arena_hard_answers
select instruction_id as uid, left(md5(model || chr(10) || instruction_id), 22) as ans_id, model, [{'role': 'user', 'content':
    to_json(array_to_string(from_json(asked, '["varchar"]'), chr(10) || chr(10)))}, {'role': 'assistant', 'content': to_json({'answer': text})}] as messages
  from written_answer where model = getvariable('written_model') and sample = 1 order by instruction_id

-- name: write_arena_hard_judgments
-- The first game shows the baseline as A, the second the model.
with met as (select *, (select model from (select model_a as model, model_b as other from written union select model_b, model_a from written) group by model
    having count(*) = (select count(distinct model) - 1 from (select model_a as model from written union select model_b from written)) order by model limit 1) as common from written_judgment),
  sided as (select *, if(model_b = common, model_b, model_a) as baseline, if(model_b = common, model_a, model_b) as model from met where judge = getvariable('written_judge')),
  played as (select *, if(baseline = model_a, has_a_first, has_b_first) as has_1, if(baseline = model_a, has_b_first, has_a_first) as has_2,
    if(baseline = model_a, a_first, b_first) as won_1, if(baseline = model_a, b_first, a_first) as won_2,
    if(baseline = model_a, a_first_text, b_first_text) as said_1, if(baseline = model_a, b_first_text, a_first_text) as said_2,
    if(baseline = model_a, 'model_a', 'model_b') as mark from sided)
select instruction_id as uid, category, judge, model, baseline,
  [if(coalesce(has_1, false), {'score': case when won_1 is null then null when won_1 = 'tie' then 'A=B' when won_1 = mark then 'A>B' else 'B>A' end, 'judgment': {'answer': said_1}}, null),
   if(coalesce(has_2, false), {'score': case when won_2 is null then null when won_2 = 'tie' then 'A=B' when won_2 = mark then 'B>A' else 'A>B' end, 'judgment': {'answer': said_2}}, null)] as games
  from played where model = getvariable('written_model') order by campaign, instruction_id, baseline, repeat

-- name: write_mt_bench_questions
select if(try_cast(external_id as bigint)::varchar = external_id, to_json(try_cast(external_id as bigint)), to_json(external_id)) as question_id, category, turns::json as turns,
  if(reference is null, null, [reference]) as reference from instruction order by id

-- name: write_mt_bench_answers
select if(try_cast(instruction_id as bigint)::varchar = instruction_id, to_json(try_cast(instruction_id as bigint)), to_json(instruction_id)) as question_id,
  left(md5(model || chr(10) || instruction_id), 22) as answer_id, model as model_id, list({'index': sample - 1, 'turns': turns} order by sample) as choices
  from written_answer where model = getvariable('written_model') group by instruction_id, model order by instruction_id

-- name: write_mt_bench_pairs
-- Game 1 shows model_1 first, game 2 model_2; error where a verdict was not read or not asked for.
select if(try_cast(instruction_id as bigint)::varchar = instruction_id, to_json(try_cast(instruction_id as bigint)), to_json(instruction_id)) as question_id,
  model_a as model_1, model_b as model_2, coalesce(replace(replace(a_first, 'model_a', 'model_1'), 'model_b', 'model_2'), 'error') as g1_winner,
  coalesce(replace(replace(b_first, 'model_a', 'model_1'), 'model_b', 'model_2'), 'error') as g2_winner, [judge, protocol] as judge, a_first_text as g1_judgment,
  b_first_text as g2_judgment, len(from_json(turns, '["varchar"]')) as turn, epoch(answered_at) as tstamp
  from written_judgment where judge = getvariable('written_judge') order by campaign, instruction_id, model_a, model_b, repeat

-- name: write_chatbot_arena
-- One verdict a row; model_a was shown first.
select instruction_id as question_id, if(swapped, model_b, model_a) as model_a, if(swapped, model_a, model_b) as model_b,
  case winner when 'tie' then 'tie' when if(swapped, 'model_b', 'model_a') then 'model_a' when if(swapped, 'model_a', 'model_b') then 'model_b' end as winner, judge,
  [{'content': prompt, 'role': 'user'}, {'content': if(swapped, text_b, text_a), 'role': 'assistant'}] as conversation_a,
  [{'content': prompt, 'role': 'user'}, {'content': if(swapped, text_a, text_b), 'role': 'assistant'}] as conversation_b,
  1 as turn, true as anony, epoch(answered_at) as tstamp from written order by trial

-- name: write_llm_comparator
-- One report of two models; a rating is a verdict, in A's favour where its score is positive.
select {'source_path': campaigns, 'custom_fields_schema': [{'name': 'judge', 'type': 'per_rating_string'}]} as metadata, [{'name': a}, {'name': b}] as models, examples from
  (select any_value(model_a) as a, any_value(model_b) as b, string_agg(distinct campaign, ', ') as campaigns, list(example order by instruction_id) as examples from
    (select any_value(model_a) as model_a, any_value(model_b) as model_b, any_value(campaign) as campaign, instruction_id, {'input_text': any_value(prompt), 'tags': [any_value(category)],
        'output_text_a': any_value(text_a), 'output_text_b': any_value(text_b), 'score': avg(number), 'individual_rater_scores': list({'score': number,
          'rating_label': case number when 1 then 'A is better' when -1 then 'B is better' when 0 then 'same' end, 'is_flipped': swapped, 'rationale': reasons, 'custom_fields': {'judge': judge}}
          order by judge, repeat, swapped), 'custom_fields': {'instruction_id': instruction_id}} as example
      from (select *, case winner when 'model_a' then 1.0 when 'model_b' then -1.0 when 'tie' then 0.0 end as number from written
        where model_a = getvariable('written_model') and model_b = getvariable('written_other')) group by instruction_id))

-- name: write_battles
select * exclude (trial) from battle where getvariable('campaign_name') is null or campaign = getvariable('campaign_name') order by campaign, instruction_id, judge, model_a, model_b, repeat, swapped

-- name: write_judgments
select * from ({judgments}) where getvariable('campaign_name') is null or campaign = getvariable('campaign_name')

-- name: write_instructions
select external_id as instruction_id, category, array_to_string(from_json(turns, '["varchar"]'), chr(10) || chr(10)) as prompt, from_json(turns, '["varchar"]') as turns, reference
  from instruction order by external_id

-- name: write_completions
select instruction_id, category, model, sample, text as completion from written_answer order by instruction_id, model, sample

-- name: write_ratings
select * from written_rating

-- name: dataset_judges
-- Who judged, with counts for the card.
select b.judge, any_value(r.model), b.protocol, b.origin, count(*), count(b.winner), count_if(b.winner = 'tie') from battle b join trial t on t.id = b.trial join respondent r on r.id = t.respondent
  where getvariable('campaign_name') is null or b.campaign = getvariable('campaign_name') group by b.judge, b.protocol, b.origin order by b.judge, b.protocol, b.origin

-- name: dataset_counts
-- Campaigns, models, instructions and verdicts; judgments with both orders, and those that were flipped.
select list(distinct campaign order by campaign), count(distinct instruction_id), (select list(distinct model order by model) from (select unnest([model_a, model_b]) as model from written)), count(*),
  (select count_if(orders = 2) from written_judgment), (select count_if(read = 2 and a_first <> b_first and total = 0) from written_judgment) from written
