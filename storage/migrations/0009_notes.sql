-- What an annotator wrote beside a vote, null: nothing.
alter table vote add column note varchar;
create or replace view people_vote as
  select p.name people, n.name annotator, p.origin, i.external_id instruction_id, i.category, a.name model_a, b.name model_b, v.swapped, v.repeat,
    case v.label when 1 then 'model_a' when 0 then 'tie' when -1 then 'model_b' end winner, v.note
  from vote v join annotator n on n.id = v.annotator join people p on p.id = n.people join instruction i on i.id = v.instruction
  join model a on a.id = v.model_a join model b on b.id = v.model_b;
