-- Trials that show any number of completions, and what is read from their replies.
-- shown: completions in the order shown, none where the respondent writes one; models and swapped: of a battle.
create table trial_of_any_shape (id bigint not null, trial_key blob not null check (octet_length(trial_key) = 16), protocol tinyint not null, respondent smallint not null,
  instruction integer not null, model_a smallint, model_b smallint, swapped boolean, shown integer[] not null, repeat smallint not null, batch bigint not null,
  check ((model_a is null) = (model_b is null)), check ((model_a is null) = (swapped is null)), check (model_a is null or len(shown) = 2));
insert into trial_of_any_shape select id, trial_key, protocol, respondent, instruction, model_a, model_b, swapped,
  if(swapped, [completion_b, completion_a], [completion_a, completion_b]), repeat, batch from trial order by id;
drop table trial;
alter table trial_of_any_shape rename to trial;

-- label: of a battle A minus B; of one completion 1 yes, 0 no, 2 not attempted. criteria: A's and B's score on each in turn.
-- places: of the completions in the order shown, 1 is best, 0 not ranked. answered: the reply is a contestant's own text.
create table verdict_of_any_shape (trial bigint not null, reading integer not null, status tinyint not null, rule varchar not null, label tinyint, score double, criteria float[],
  places smallint[], answered boolean not null, flagged boolean not null, cost bigint not null, batch bigint not null,
  check ((label is not null)::integer + (places is not null)::integer + answered::integer = (status = 0)::integer),
  check (status = 0 or (score is null and criteria is null)), check (label between -1 and 2), check (status between 0 and 5));
insert into verdict_of_any_shape select trial, reading, status, rule, label, score, null, null, false, false, cost, batch from verdict order by batch, trial;
drop table verdict;
alter table verdict_of_any_shape rename to verdict;

-- structured: whether the endpoint was held to a JSON schema. logprobs: likeliest tokens at the first places, as JSON.
-- cut: characters cut out of the texts shown, so that they fit the context; null: none.
alter table attempt add column structured boolean;
alter table attempt add column logprobs varchar;
alter table attempt add column cut integer;

create or replace view settled as select * from verdict qualify row_number() over (partition by trial order by reading desc, batch desc) = 1;
create or replace view battle as
  select c.name campaign, t.id trial, cj.name judge, r.origin, r.protocol, i.external_id instruction_id, i.category, a.name model_a, b.name model_b, t.swapped, t.repeat,
    case v.status when 0 then 'ok' when 1 then 'unreadable' when 2 then 'refused' when 3 then 'truncated' when 4 then 'filtered' when 5 then 'too_long' end status,
    case v.label when 1 then 'model_a' when 0 then 'tie' when -1 then 'model_b' end winner, v.score score_difference, v.criteria, v.flagged, v.cost
  from planned p join campaign c on c.id = p.campaign join trial t on t.id = p.trial join settled v on v.trial = t.id join respondent r on r.id = t.respondent
  join campaign_judge cj on cj.campaign = p.campaign and cj.respondent = r.id join instruction i on i.id = t.instruction
  join model a on a.id = t.model_a join model b on b.id = t.model_b;
-- One row a completion that was graded by itself.
create view grade as
  select c.name campaign, t.id trial, cj.name judge, r.origin, r.protocol, i.external_id instruction_id, i.category, m.name model, t.repeat,
    case v.status when 0 then 'ok' when 1 then 'unreadable' when 2 then 'refused' when 3 then 'truncated' when 4 then 'filtered' when 5 then 'too_long' end status,
    case v.label when 1 then 'yes' when 0 then 'no' when 2 then 'not_attempted' end grade, v.flagged, v.cost
  from planned p join campaign c on c.id = p.campaign join trial t on t.id = p.trial join settled v on v.trial = t.id join respondent r on r.id = t.respondent
  join campaign_judge cj on cj.campaign = p.campaign and cj.respondent = r.id join instruction i on i.id = t.instruction
  join completion s on s.id = t.shown[1] join model m on m.id = s.model where t.model_a is null and len(t.shown) = 1;
-- One row a completion on a ballot; rank 1 is best, null is not ranked.
create view ballot as
  select c.name campaign, t.id trial, cj.name judge, r.origin, r.protocol, i.external_id instruction_id, i.category, m.name model, s.place shown_at, t.repeat,
    case v.status when 0 then 'ok' when 1 then 'unreadable' when 2 then 'refused' when 3 then 'truncated' when 4 then 'filtered' when 5 then 'too_long' end status,
    nullif(v.places[s.place], 0) rank, v.flagged, v.cost
  from planned p join campaign c on c.id = p.campaign join trial t on t.id = p.trial join settled v on v.trial = t.id join respondent r on r.id = t.respondent
  join campaign_judge cj on cj.campaign = p.campaign and cj.respondent = r.id join instruction i on i.id = t.instruction
  cross join lateral (select unnest(t.shown) completion, generate_subscripts(t.shown, 1) place) s
  join completion o on o.id = s.completion join model m on m.id = o.model where t.model_a is null and len(t.shown) > 1;
