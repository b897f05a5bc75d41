-- name: stage_votes
-- A temporary table for votes on their way in; row is that of the file.
create or replace temp table staged_vote (row bigint, annotator varchar, instruction integer, model_a smallint, model_b smallint, swapped boolean, repeat integer, label tinyint, note varchar);

-- name: people
-- Groups of people with how many they are, how many votes they gave, and how many of these are ties.
select p.id, p.name, p.origin, count(distinct n.id), count(v.annotator), count(v.annotator) filter (where v.label = 0)
  from people p left join annotator n on n.people = p.id left join vote v on v.annotator = n.id group by all order by p.id;

-- name: insert_people
insert into people select coalesce(max(id), 0) + 1, $name, $origin from people having not exists (select 1 from people where name = $name);

-- name: insert_annotators
insert into annotator select (select coalesce(max(id), 0) from annotator) + row_number() over (order by min(s.row)), $people, s.annotator
  from staged_vote s where not exists (select 1 from annotator n where n.people = $people and n.name = s.annotator) group by s.annotator;

-- name: repeated_vote
-- Two votes with one number, which the file gave them itself.
select arg_max(row, row), annotator, instruction, model_a, model_b, repeat from staged_vote group by annotator, instruction, model_a, model_b, swapped, repeat having count(*) > 1 order by 1 limit 1;

-- name: clashing_vote
-- A vote that is in the store with another winner.
select s.row, s.annotator, s.instruction, s.model_a, s.model_b, v.label from staged_vote s join annotator n on n.people = $people and n.name = s.annotator
  join vote v on v.annotator = n.id and v.instruction = s.instruction and v.model_a = s.model_a and v.model_b = s.model_b and v.swapped is not distinct from s.swapped and v.repeat = s.repeat
  where v.label <> s.label order by s.row limit 1;

-- name: insert_votes
insert into vote select n.id, s.instruction, s.model_a, s.model_b, s.swapped, s.repeat, s.label, $batch, null from staged_vote s join annotator n on n.people = $people and n.name = s.annotator
  where not exists (select 1 from vote v where v.annotator = n.id and v.instruction = s.instruction and v.model_a = s.model_a and v.model_b = s.model_b
    and v.swapped is not distinct from s.swapped and v.repeat = s.repeat) order by s.row;

-- name: insert_notes
-- Notes for votes that have none: those of a file that was imported before notes were kept come in as well.
update vote v set note = s.note from staged_vote s join annotator n on n.people = $people and n.name = s.annotator
  where s.note is not null and v.note is null and v.annotator = n.id and v.instruction = s.instruction and v.model_a = s.model_a and v.model_b = s.model_b
    and v.swapped is not distinct from s.swapped and v.repeat = s.repeat;

-- name: votes_on_battle
-- What people said of two models on an instruction, in whatever order these were shown; those with notes first.
select p.name, p.origin, n.name, case v.label when 1 then a.name when -1 then b.name else 'tie' end, case v.swapped when true then b.name when false then a.name end, v.repeat, v.note
  from vote v join annotator n on n.id = v.annotator join people p on p.id = n.people join model a on a.id = v.model_a join model b on b.id = v.model_b
  where v.instruction = $instruction and ((v.model_a = $one and v.model_b = $other) or (v.model_a = $other and v.model_b = $one))
  order by v.note is null, p.name, n.name, v.repeat, v.swapped;

-- name: cast_on
-- What some completions answer and whose they are, as they came.
select c.id, c.instruction, c.model, m.name from completion c join model m on m.id = c.model where c.id in (select unnest($completions::integer[])) and c.variant = '';

-- name: cast_before
-- What a person of a group said of a battle.
select v.swapped, v.label, v.note from vote v join annotator n on n.id = v.annotator join people p on p.id = n.people
  where p.name = $people and n.name = $annotator and v.instruction = $instruction and v.model_a = $model_a and v.model_b = $model_b;

-- name: insert_annotator
insert into annotator select (select coalesce(max(id), 0) + 1 from annotator), p.id, $annotator from people p
  where p.name = $people and not exists (select 1 from annotator n where n.people = p.id and n.name = $annotator);

-- name: cast_vote
insert into vote select n.id, $instruction, $model_a, $model_b, $swapped, 1, $label, $batch, $note from annotator n join people p on p.id = n.people where p.name = $people and n.name = $annotator;

-- name: replace_vote
update vote v set swapped = $swapped, label = $label, batch = $batch, note = $note from annotator n join people p on p.id = n.people
  where p.name = $people and n.name = $annotator and v.annotator = n.id and v.instruction = $instruction and v.model_a = $model_a and v.model_b = $model_b;

-- name: own_votes
select i.external_id, a.name, b.name, v.label, v.note from vote v join annotator n on n.id = v.annotator join people p on p.id = n.people
  join instruction i on i.id = v.instruction join model a on a.id = v.model_a join model b on b.id = v.model_b
  where p.name = $people and n.name = $annotator order by v.batch, v.repeat;

-- name: votes
-- Votes of a group as codes: ids of models and instructions, of annotators; label is A minus B.
select v.model_a, v.model_b, v.annotator, v.instruction, v.repeat, coalesce(v.swapped, false) swapped, v.swapped is not null shown, v.label
  from vote v join annotator n on n.id = v.annotator where n.people = $people;

-- name: annotator_names
select id, name from annotator where people = $people order by id;

-- name: merge_people_clash
select p.name, p.origin, o.origin from people p join made.people o on o.name = p.name where o.origin <> p.origin order by p.name limit 1;

-- name: merge_people
insert into made.people select (select coalesce(max(id), 0) from made.people) + row_number() over (order by id), name, origin from people p where not exists (select 1 from made.people o where o.name = p.name);
insert into made.annotator select (select coalesce(max(id), 0) from made.annotator) + row_number() over (order by n.id), o.id, n.name
  from annotator n join people p on p.id = n.people join made.people o on o.name = p.name where not exists (select 1 from made.annotator k where k.people = o.id and k.name = n.name);
insert into temp.map_annotator select $side, n.id, k.id from annotator n join people p on p.id = n.people join made.people o on o.name = p.name join made.annotator k on k.people = o.id and k.name = n.name;

-- name: merge_votes_clash
select i.external_id, a.name, b.name, n.name from vote v join annotator n on n.id = v.annotator join model a on a.id = v.model_a join model b on b.id = v.model_b join instruction i on i.id = v.instruction
  join temp.map_annotator mn on mn.side = $side and mn.old = v.annotator join temp.map_instruction mi on mi.side = $side and mi.old = v.instruction
  join temp.map_model ma on ma.side = $side and ma.old = v.model_a join temp.map_model mb on mb.side = $side and mb.old = v.model_b
  join made.vote o on o.annotator = mn.new and o.instruction = mi.new and o.model_a = ma.new and o.model_b = mb.new and o.swapped is not distinct from v.swapped and o.repeat = v.repeat
  where o.label <> v.label order by all limit 1;

-- name: merge_votes
insert into made.vote select mn.new, mi.new, ma.new, mb.new, v.swapped, v.repeat, v.label, 1, null from vote v
  join temp.map_annotator mn on mn.side = $side and mn.old = v.annotator join temp.map_instruction mi on mi.side = $side and mi.old = v.instruction
  join temp.map_model ma on ma.side = $side and ma.old = v.model_a join temp.map_model mb on mb.side = $side and mb.old = v.model_b
  where not exists (select 1 from made.vote o where o.annotator = mn.new and o.instruction = mi.new and o.model_a = ma.new and o.model_b = mb.new
    and o.swapped is not distinct from v.swapped and o.repeat = v.repeat) order by v.annotator, v.instruction;

-- name: merge_notes
-- A vote that several stores have keeps the first note that one of them has.
update made.vote o set note = v.note from vote v
  join temp.map_annotator mn on mn.side = $side and mn.old = v.annotator join temp.map_instruction mi on mi.side = $side and mi.old = v.instruction
  join temp.map_model ma on ma.side = $side and ma.old = v.model_a join temp.map_model mb on mb.side = $side and mb.old = v.model_b
  where v.note is not null and o.note is null and o.annotator = mn.new and o.instruction = mi.new and o.model_a = ma.new and o.model_b = mb.new
    and o.swapped is not distinct from v.swapped and o.repeat = v.repeat;

-- name: check_vote_names
-- A vote has its annotator, that one its group, and both models and the instruction are there.
select count(*), min('a vote of annotator ' || v.annotator || ' on instruction ' || v.instruction) from vote v
  where not exists (select 1 from annotator n join people p on p.id = n.people where n.id = v.annotator) or not exists (select 1 from instruction i where i.id = v.instruction)
    or not exists (select 1 from model m where m.id = v.model_a) or not exists (select 1 from model m where m.id = v.model_b);

-- name: votable_completions
-- Every first answer as it came: whose it is and on which instruction, by name, and a hash of its text to find equal ones.
select c.id, m.name model, i.external_id instruction, hash(c.text) text_hash
  from completion c join model m on m.id = c.model join instruction i on i.id = c.instruction where c.sample = 1 and c.variant = '' order by c.id;

-- name: completions_to_show
-- The key and the text of some completions, with what they answer.
select c.id, c.completion_key, c.text, i.turns from completion c join instruction i on i.id = c.instruction where c.id in (select unnest($completions::integer[]));

-- name: keys_of
select id, completion_key from completion where id in (select unnest($completions::integer[]));

-- name: completion_keys
-- Whose completion is known by which key, and on which instruction, by name.
select c.completion_key, m.name, i.external_id from completion c join model m on m.id = c.model join instruction i on i.id = c.instruction where c.variant = '';
