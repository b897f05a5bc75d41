-- Budgets in tokens: what a call set aside is on record with it, beside the money. Of the answered attempts of a step
-- the first sent is the one with the lowest number: numbers go on through clocks that are set back, times do not.
alter table attempt add column reserved_tokens bigint;
create or replace view reply as select * from attempt where fault = 0 qualify row_number() over (partition by trial, step order by number, batch) = 1;
-- tokens: of answered calls what they used, of the others what was set aside.
create or replace view spend as select campaign, coalesce(sum(coalesce(cost, reserved)), 0)::bigint nano, coalesce(sum(cost), 0)::bigint known,
  coalesce(sum(reserved) filter (where cost is null), 0)::bigint unknown, count(*) calls, count(*) filter (where fault = 0) answered, coalesce(sum(wait_ms), 0)::bigint wait_ms,
  coalesce(sum(input_tokens), 0)::bigint input_tokens, coalesce(sum(output_tokens), 0)::bigint output_tokens from attempt group by campaign;
