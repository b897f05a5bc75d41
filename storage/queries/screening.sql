-- name: screening
-- By which rules completions were looked through, and up to which; no row: never.
select rules, last from screening;

-- name: newest_completion
select coalesce(max(id), 0) from completion;

-- name: screening_candidates
-- Texts that may break a rule, found by RE2: the others need no closer look.
select id, text from completion where id between $low and $high
  and (regexp_matches(text, $anywhere) or regexp_matches(lower(text), $in_lower_case)) order by id;

-- name: clear_suspicions
delete from suspicion;

-- name: insert_suspicions
insert into suspicion select unnest($completions), unnest($rules);

-- name: clear_screening
delete from screening;

-- name: insert_screening
insert into screening values ($rules, $last, $now);
