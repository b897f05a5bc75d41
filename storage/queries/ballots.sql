-- name: ballot_entries
-- One row a model on a ballot, from the cells `given`; a rank that is empty or not a number in a column of numbers was not ranked.
select *, case when coalesce(cast(rank_cell as varchar), '') in ('', 'nan') then null else try_cast(rank_cell as double) end as place,
    coalesce(try_cast(repeat_cell as integer), 1) as repeat, try_cast(weight_cell as double) as weight
  from given;

-- name: ballot_bad_row
-- The first row that cannot be meant, our name of its column and what that holds. $there names the optional columns that the file has.
-- Materialized: put into one expression, it is one that DuckDB 2.0 rewrites into an error of its own.
with judged as materialized (select *, case when coalesce(model, '') = '' then 'model'
    when list_contains($there, 'judge') and coalesce(judge, '') = '' then 'judge' when list_contains($there, 'instruction_id') and coalesce(instruction_id, '') = '' then 'instruction_id'
    when coalesce(cast(rank_cell as varchar), '') not in ('', 'nan') and not coalesce(place > 0 and isfinite(place), false) then 'rank'
    when list_contains($there, 'repeat') and not coalesce(try_cast(repeat_cell as double) = repeat and repeat >= 1, false) then 'repeat'
    when list_contains($there, 'weight') and not coalesce(weight >= 0 and isfinite(weight), false) then 'weight' end as place_of from entry)
select row, place_of, case place_of when 'rank' then cast(rank_cell as varchar) when 'repeat' then cast(repeat_cell as varchar) when 'weight' then cast(weight_cell as varchar) end as cell
  from judged where place_of is not null order by row limit 1;

-- name: ballot_twice
-- A model that stands on a ballot twice: its name and the two rows.
select model, min(row), min(row, 2)[2] from entry group by judge, instruction_id, repeat, model having count(*) > 1 order by min(row, 2)[2] limit 1;

-- name: ballot_two_weights
-- A ballot whose rows weigh unlike: the two rows and their weights.
select arg_min(row, weight), min(weight), arg_max(row, weight), max(weight) from entry group by judge, instruction_id, repeat having min(weight) < max(weight) order by min(row) limit 1;

-- name: ballot_numbers
-- Ballots by name, numbered from 0.
create temp table ballot as select row_number() over (order by judge, instruction_id, repeat) - 1 as number, judge, instruction_id, repeat, weight
  from (select judge, instruction_id, repeat, min(weight) as weight from entry group by all);

-- name: ballot_ranks
-- Rows as (ballot, model, rank): 1, 2, 2, 4, infinite where it was not ranked. Under $below also models that other ballots on the instruction have, but never a judge's own on its ballot.
with numbered as (select b.number, b.judge, b.instruction_id, e.model, e.place from entry e join ballot b on b.judge is not distinct from e.judge and b.instruction_id is not distinct from e.instruction_id and b.repeat = e.repeat),
  shown as (select distinct instruction_id, model from numbered),
  ranked as (select number, model, if(place is null, 'infinity'::double, rank() over (partition by number order by place nulls last)) as rank from numbered
    union all
    select b.number, s.model, 'infinity'::double from ballot b join shown s on s.instruction_id is not distinct from b.instruction_id
      where $below and s.model is distinct from b.judge and not exists (select 1 from numbered n where n.number = b.number and n.model = s.model))
select number, m.code as model, rank from ranked join model_names m on m.name = ranked.model;

-- name: ballot_heads
-- The judge, instruction, repeat and weight of each ballot, as codes.
select coalesce(j.code, 0) as judge, coalesce(i.code, -1) as instruction, repeat, weight
  from ballot b left join judge_names j on j.name = b.judge left join instruction_names i on i.name = b.instruction_id order by number;

-- name: campaign_ballots
-- What judges of several completions said, in force: a row a completion shown; its place is 0 where it was not ranked, null where nothing was read.
select t.id as trial, t.respondent, t.instruction, t.repeat, v.status, o.model, v.places[s.shown_at] as place
  from planned p join trial t on t.id = p.trial join settled v on v.trial = t.id
  cross join lateral (select unnest(t.shown) as completion, generate_subscripts(t.shown, 1) as shown_at) s
  join completion o on o.id = s.completion where p.campaign = $campaign and t.model_a is null and len(t.shown) > 1;
