-- name: stage_gold
-- A temporary table for gold labels on their way in; row is that of the file.
create or replace temp table staged_gold (row bigint, annotator varchar, instruction varchar, model varchar, label tinyint);

-- name: unknown_gold
-- The first label of an answer that the store does not have.
select s.row, s.instruction, s.model, exists (select 1 from model where name = s.model), exists (select 1 from instruction where external_id = s.instruction) from staged_gold s
  where not exists (select 1 from completion c join model m on m.id = c.model join instruction i on i.id = c.instruction where m.name = s.model and i.external_id = s.instruction and c.sample = 1 and c.variant = '')
  order by s.row limit 1;

-- name: repeated_gold
-- Two labels of one annotator on one answer that differ.
select max(row), min(row), annotator, instruction, model from staged_gold group by annotator, instruction, model having count(distinct label) > 1 order by 1 limit 1;

-- name: clashing_gold
-- A label that is in the store otherwise.
select s.row, s.annotator, s.instruction, s.model, g.label from staged_gold s join annotator n on n.people = $people and n.name = s.annotator
  join model m on m.name = s.model join instruction i on i.external_id = s.instruction join completion c on c.model = m.id and c.instruction = i.id and c.sample = 1 and c.variant = ''
  join gold g on g.annotator = n.id and g.completion = c.id where g.label <> s.label order by s.row limit 1;

-- name: insert_graders
insert into annotator select (select coalesce(max(id), 0) from annotator) + row_number() over (order by min(s.row)), $people, s.annotator
  from staged_gold s where not exists (select 1 from annotator n where n.people = $people and n.name = s.annotator) group by s.annotator;

-- name: insert_gold
insert into gold select n.id, c.id, any_value(s.label), $batch from staged_gold s join annotator n on n.people = $people and n.name = s.annotator
  join model m on m.name = s.model join instruction i on i.external_id = s.instruction join completion c on c.model = m.id and c.instruction = i.id and c.sample = 1 and c.variant = ''
  where not exists (select 1 from gold g where g.annotator = n.id and g.completion = c.id) group by n.id, c.id;

-- name: gold_labels
-- What people said of single answers, in the columns of `grades`; numbers of annotators are below 0, where no respondent's are.
select -g.annotator respondent, c.instruction, c.model, 1::integer repeat, 0::tinyint status, g.label, (-1)::tinyint truth from gold g join completion c on c.id = g.completion;

-- name: gold_annotators
select -id, name from annotator where id in (select annotator from gold) order by id;

-- name: gold_groups
-- Groups with gold labels, and how many.
select p.name, p.origin, count(*) from gold g join annotator n on n.id = g.annotator join people p on p.id = n.people group by all order by 1;

-- name: merge_gold_clash
select i.external_id, m.name, n.name from gold g join annotator n on n.id = g.annotator join completion c on c.id = g.completion join model m on m.id = c.model join instruction i on i.id = c.instruction
  join temp.map_annotator mn on mn.side = $side and mn.old = g.annotator join temp.map_completion mc on mc.side = $side and mc.old = g.completion
  join made.gold o on o.annotator = mn.new and o.completion = mc.new where o.label <> g.label order by all limit 1;

-- name: merge_gold
insert into made.gold select mn.new, mc.new, g.label, 1 from gold g
  join temp.map_annotator mn on mn.side = $side and mn.old = g.annotator join temp.map_completion mc on mc.side = $side and mc.old = g.completion
  where not exists (select 1 from made.gold o where o.annotator = mn.new and o.completion = mc.new);

-- name: check_gold_names
-- A gold label has its annotator, that one its group, and the completion is there.
select count(*), min('a label of annotator ' || g.annotator || ' of completion ' || g.completion) from gold g
  where not exists (select 1 from annotator n join people p on p.id = n.people where n.id = g.annotator) or not exists (select 1 from completion c where c.id = g.completion);
