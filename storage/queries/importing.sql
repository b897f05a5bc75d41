-- name: stage_instructions
-- A temporary table for rows on their way in.
create or replace temp table staged_instruction (ordinal integer, instruction_key blob, external_id varchar, category varchar, turns varchar, reference varchar);

-- name: clashing_instruction
-- An id that already stands for another text, or a text that already has another id.
select s.external_id, i.external_id from staged_instruction s join instruction i
  on (i.external_id = s.external_id) <> (i.instruction_key = s.instruction_key) order by s.ordinal limit 1;

-- name: repeated_instruction
-- Two ids with one text, or two texts with one id.
select min_by(external_id, ordinal), max_by(external_id, ordinal) from staged_instruction group by instruction_key having count(distinct external_id) > 1
  union all select external_id, external_id from staged_instruction group by external_id having count(distinct instruction_key) > 1 limit 1;

-- name: clashing_reference
-- An instruction with two reference answers, here or in the store: what was graded against one is no verdict on the other.
select min_by(s.external_id, s.ordinal) from staged_instruction s left join instruction i on i.instruction_key = s.instruction_key
  group by s.instruction_key having count(distinct s.reference) > 1 or min(s.reference) <> any_value(i.reference) order by min(s.ordinal) limit 1;

-- name: fill_references
-- Nothing was graded against a reference answer that was not there.
update instruction set reference = s.reference from (select instruction_key, any_value(reference) reference from staged_instruction where reference is not null group by instruction_key) s
  where s.instruction_key = instruction.instruction_key and instruction.reference is null;

-- name: insert_instructions
insert into instruction select (select coalesce(max(id), 0) from instruction) + row_number() over (order by ordinal), instruction_key, external_id, category, turns, told
  from (select *, any_value(reference) over (partition by instruction_key) told from staged_instruction qualify row_number() over (partition by instruction_key order by ordinal) = 1) s
  where not exists (select 1 from instruction i where i.instruction_key = s.instruction_key);

-- name: instruction_keys
select external_id, id, instruction_key from instruction;

-- name: models
select name, id, elo, family from model;

-- name: insert_models
-- New names get the next ids in the order given.
insert into model select (select coalesce(max(id), 0) from model) + u.position, u.name, null, null
  from (select unnest($names) as name, generate_subscripts($names, 1) as position) u;

-- name: set_elo
update model set elo = u.elo from (select unnest($names) as name, unnest($elos) as elo) u where model.name = u.name and model.elo is distinct from u.elo;

-- name: set_family
update model set family = u.family from (select unnest($names) as name, unnest($families) as family) u where model.name = u.name and model.family is distinct from u.family;

-- name: stage_completions
create or replace temp table staged_completion (ordinal integer, completion_key blob, instruction integer, model smallint, sample smallint, variant varchar, text varchar);

-- name: clashing_completion
-- A model's answer to an instruction that is in the store with another text.
select m.name, i.external_id from staged_completion s join completion c
  on c.instruction = s.instruction and c.model = s.model and c.sample = s.sample and c.variant = s.variant and c.completion_key <> s.completion_key
  join model m on m.id = s.model join instruction i on i.id = s.instruction order by s.ordinal limit 1;

-- name: repeated_completion
-- Two texts for one answer in the same import.
select m.name, i.external_id from staged_completion s join model m on m.id = s.model join instruction i on i.id = s.instruction
  group by m.name, i.external_id, s.sample, s.variant having count(distinct s.completion_key) > 1 limit 1;

-- name: insert_completions
insert into completion select (select coalesce(max(id), 0) from completion) + row_number() over (order by ordinal), completion_key, instruction, model, sample, variant, text, length(text)
  from (select * from staged_completion qualify row_number() over (partition by completion_key order by ordinal) = 1) s
  where not exists (select 1 from completion c where c.completion_key = s.completion_key);

-- name: catalogue
-- Every first answer of the named models, with a hash of its text to find equal ones.
select m.name model, i.external_id instruction, i.id instruction_id, i.instruction_key, i.reference is not null, c.id completion_id, c.completion_key, hash(c.text) text_hash
  from completion c join model m on m.id = c.model join instruction i on i.id = c.instruction
  where m.name in (select unnest($models)) and c.sample = 1 and c.variant = '' order by i.external_id, m.name;

-- name: edited_catalogue
-- The edited copies of first answers of the named models, with a hash of the text to find unchanged ones.
select m.name model, i.external_id instruction, c.variant, c.id completion_id, c.completion_key, hash(c.text) text_hash
  from completion c join model m on m.id = c.model join instruction i on i.id = c.instruction
  where m.name in (select unnest($models)) and c.sample = 1 and c.variant in (select unnest($variants)) order by i.external_id, m.name;

-- name: answer_key
-- Every text with its instruction, for the embedded judge server.
select i.external_id, i.turns, m.name, c.text from completion c join model m on m.id = c.model join instruction i on i.id = c.instruction order by m.name, i.external_id;

-- name: contestants
-- Models with first answers, their rating and how many instructions they answered.
select m.name, m.elo, count(*) from completion c join model m on m.id = c.model where c.sample = 1 and c.variant = '' group by all order by 1;
