-- What people know or say of single completions: gold labels. label: 1 correct, 0 incorrect, 2 not attempted.
create table gold (annotator integer not null, completion integer not null, label tinyint not null check (label between 0 and 2), batch bigint not null);
-- One row a label, with names.
create view people_grade as
  select p.name people, n.name annotator, p.origin, i.external_id instruction_id, i.category, m.name model,
    case g.label when 1 then 'correct' when 0 then 'incorrect' else 'not attempted' end grade
  from gold g join annotator n on n.id = g.annotator join people p on p.id = n.people join completion c on c.id = g.completion
  join instruction i on i.id = c.instruction join model m on m.id = c.model;
