-- name: battles_verdicts
-- What `encode` reads, from the cells `battle`, which are kept beside it. A winner is a word or the name of one of the two models; words come first. A share decides the label where there is no winner. Parameters: the words for A and for B, of a winner and again of people's.
  select *, coalesce(case when list_contains(?::varchar[], winner) then 1 when list_contains(?::varchar[], winner) then -1 when winner = 'tie' then 0 when winner = model_a then 1 when winner = model_b then -1 end,
      case when isnan(outcome) then null else sign(outcome - 0.5)::tinyint end)::tinyint as label
  from (select *, false as swapped, coalesce(try_cast(repeat_cell as integer), 1) as repeat, try_cast(weight_cell as double) as weight, try_cast(outcome_cell as double) as outcome, try_cast(score_cell as double) as score,
      case when list_contains(?::varchar[], human_cell) then 1.0 when list_contains(?::varchar[], human_cell) then 0.0 when human_cell = 'tie' then 0.5 when human_cell = model_a then 1.0 when human_cell = model_b then 0.0 end as human
    from battle);

-- name: battles_bad_row
-- The first row that cannot be meant, our name of its column and what that holds. $there names the optional columns that the file has.
-- Materialized: put into one expression, it is one that DuckDB 2.0 rewrites into an error of its own.
with judged as materialized (select *, case when coalesce(model_a, '') = '' then 'model_a' when coalesce(model_b, '') = '' then 'model_b' when model_a = model_b then 'itself'
    when list_contains($there, 'judge') and coalesce(judge, '') = '' then 'judge' when list_contains($there, 'instruction_id') and coalesce(instruction_id, '') = '' then 'instruction_id'
    when list_contains($there, 'cluster') and coalesce(cluster, '') = '' then 'cluster'
    when coalesce(winner, '') <> '' and label is null then 'winner' when (winner = model_a and label <> 1) or (winner = model_b and label <> -1) then 'named'
    when (human_cell = model_a and human <> 1) or (human_cell = model_b and human <> 0) then 'human_named' when coalesce(human_cell, '') <> '' and human is null then 'human_winner'
    when coalesce(cast(outcome_cell as varchar), '') not in ('', 'nan') and not coalesce(outcome between 0 and 1, false) then 'score'
    when list_contains($there, 'repeat') and not coalesce(try_cast(repeat_cell as double) = repeat and repeat >= 1, false) then 'repeat'
    when list_contains($there, 'weight') and not coalesce(weight >= 0 and isfinite(weight), false) then 'weight'
    when coalesce(cast(score_cell as varchar), '') not in ('', 'nan') and not coalesce(isfinite(score), false) then 'score_difference' end as place from verdict)
select row, place,
  case place when 'model_a' then model_a when 'model_b' then model_b when 'itself' then model_a when 'judge' then judge when 'instruction_id' then instruction_id when 'cluster' then cluster
    when 'winner' then winner when 'named' then winner when 'score' then cast(outcome_cell as varchar) when 'repeat' then cast(repeat_cell as varchar) when 'weight' then cast(weight_cell as varchar)
    when 'score_difference' then cast(score_cell as varchar) else human_cell end as cell
  from judged where place is not null order by row limit 1;
