-- Votes of people on pairs of completions, imported in groups; no campaign asks for them.
-- origin: people, or simulated people to rehearse with.
create table people (id smallint primary key, name varchar not null unique, origin varchar not null check (origin in ('people', 'simulated')));
create table annotator (id integer primary key, people smallint not null, name varchar not null, unique (people, name));
-- swapped: whether B was shown first, null: not known. repeat: counts an annotator's votes on one showing. label is A minus B.
create table vote (annotator integer not null, instruction integer not null, model_a smallint not null, model_b smallint not null, swapped boolean, repeat smallint not null,
  label tinyint not null, batch bigint not null, check (model_a <> model_b), check (label between -1 and 1), check (repeat >= 1));
-- One row a vote, with names.
create view people_vote as
  select p.name people, n.name annotator, p.origin, i.external_id instruction_id, i.category, a.name model_a, b.name model_b, v.swapped, v.repeat,
    case v.label when 1 then 'model_a' when 0 then 'tie' when -1 then 'model_b' end winner
  from vote v join annotator n on n.id = v.annotator join people p on p.id = n.people join instruction i on i.id = v.instruction
  join model a on a.id = v.model_a join model b on b.id = v.model_b;
