-- The first schema. The file is attached with row groups of 4,096; automatic checkpoints are off; one thread writes.
-- Small tables (thousands of rows) have primary keys. The big ones (trial, plan, attempt, verdict) have none: an index
-- on a random key would be rewritten whole at every checkpoint.

create table store (format integer not null, store_id uuid not null, venire_version varchar not null, created_at timestamptz not null);
create table migration (number integer primary key, name varchar not null, applied_at timestamptz not null);

-- text: the campaign file as written; settings: the same as canonical JSON; in_force: the first round that counts.
create table campaign (id integer primary key, name varchar not null unique, seed bigint not null, text varchar not null, settings varchar not null,
  in_force integer, started_at timestamptz not null);
create table model (id smallint primary key, name varchar not null unique, elo double, family varchar);
create table respondent (id smallint primary key, model varchar not null, role varchar not null check (role in ('judge', 'contestant')),
  protocol varchar not null, options varchar not null, respondent_key blob not null unique,
  origin varchar not null check (origin in ('real', 'simulated', 'recorded')));
-- A judge's name, own Elo and family are labels of the campaign, not part of its key.
create table campaign_judge (campaign integer not null, respondent smallint not null, name varchar not null, elo double, family varchar, primary key (campaign, name));
create table prompt (id integer primary key, name varchar not null, digest blob not null unique, text varchar not null);
create table instruction (id integer primary key, instruction_key blob not null unique, external_id varchar not null unique, category varchar not null,
  turns varchar not null, reference varchar);
create table completion (id integer primary key, completion_key blob not null unique, instruction integer not null, model smallint not null, sample smallint not null,
  variant varchar not null, text varchar not null using compression zstd, characters integer not null);

-- A trial belongs to the store and is known by its key; the id is its short name in this file. Never changed.
-- swapped: whether B was shown first.
create table trial (id bigint not null, trial_key blob not null check (octet_length(trial_key) = 16), protocol tinyint not null, respondent smallint not null,
  instruction integer not null, model_a smallint not null, model_b smallint not null, completion_a integer not null, completion_b integer not null,
  swapped boolean not null, repeat smallint not null, batch bigint not null);
-- The plan belongs to a campaign; its round row is written last, so that a plan cut short is seen and made anew.
-- design: the matchups, instructions and models that were chosen, as JSON; what is shown later is what was planned.
create table round (campaign integer not null, number integer not null, policy varchar not null, seed bigint not null, trials bigint not null,
  equal_texts bigint not null, design varchar not null, planned_at timestamptz not null, primary key (campaign, number));
create table plan (campaign integer not null, round integer not null, ordinal bigint not null, trial bigint not null, gap float, batch bigint not null);

create table lane (id smallint primary key, name varchar not null unique, provider varchar not null, endpoint varchar not null);
-- One row a call sent, answered or not; campaign is the one that paid; number goes on across resumptions. Append-only.
-- fault: 0 answered, else its class; cost in nano-dollars, null: not known, counted at what was reserved.
create table attempt (campaign integer not null, trial bigint not null, step tinyint not null, number smallint not null, lane smallint not null,
  sent_at timestamptz not null, latency_ms integer, fault tinyint not null, http_status smallint, message varchar, wait_ms integer, finish varchar,
  input_tokens integer, cached_tokens integer, output_tokens integer, reasoning_tokens integer, reserved bigint not null, cost bigint,
  served_model varchar, fingerprint varchar, request_digest blob not null,
  text varchar using compression zstd, reasoning varchar using compression zstd, raw varchar using compression zstd, batch bigint not null,
  check ((fault = 0) = (text is not null)));
create table reading (id integer primary key, parser varchar not null, made_at timestamptz not null);
-- label and score are A minus B.
create table verdict (trial bigint not null, reading integer not null, status tinyint not null, rule varchar not null, label tinyint, score double, cost bigint not null,
  batch bigint not null,
  check ((label is not null) = (status = 0)), check (status = 0 or score is null), check (label between -1 and 1), check (status between 0 and 5));
-- A step that used up its attempts; not tried again until cleared.
create table failure (trial bigint not null, step tinyint not null, fault tinyint not null, cleared boolean not null, batch bigint not null);

-- Every commit adds its line here: an exception at COMMIT means "unknown", and this says which it was.
create table ledger (batch bigint not null, committed_at timestamptz not null, written bigint not null, running bigint not null);
create table event (happened_at timestamptz not null, campaign integer, kind varchar not null, detail varchar not null, batch bigint not null);

-- Of the answered attempts of a step, the first sent is the step's reply.
create view reply as select * from attempt where fault = 0 qualify row_number() over (partition by trial, step order by sent_at, number, batch) = 1;
create view settled as select * from verdict qualify row_number() over (partition by trial order by reading desc, batch desc) = 1;
create view failed as select trial, step, fault from failure qualify row_number() over (partition by trial order by batch desc, cleared desc) = 1 and not cleared;
create view planned as select distinct p.campaign, p.trial from plan p join campaign c on c.id = p.campaign
  join round r on r.campaign = p.campaign and r.number = p.round where p.round >= c.in_force;
create view missing as select p.campaign, p.round, p.ordinal, p.trial from plan p join campaign c on c.id = p.campaign
  join round r on r.campaign = p.campaign and r.number = p.round where p.round >= c.in_force and not exists (select 1 from verdict v where v.trial = p.trial) and not exists (select 1 from failed f where f.trial = p.trial);
create view battle as
  select c.name campaign, t.id trial, cj.name judge, r.origin, i.external_id instruction_id, i.category, a.name model_a, b.name model_b, t.swapped, t.repeat,
    case v.status when 0 then 'ok' when 1 then 'unreadable' when 2 then 'refused' when 3 then 'truncated' when 4 then 'filtered' when 5 then 'too_long' end status,
    case v.label when 1 then 'model_a' when 0 then 'tie' when -1 then 'model_b' end winner, v.score score_difference, v.cost
  from planned p join campaign c on c.id = p.campaign join trial t on t.id = p.trial join settled v on v.trial = t.id join respondent r on r.id = t.respondent
  join campaign_judge cj on cj.campaign = p.campaign and cj.respondent = r.id join instruction i on i.id = t.instruction
  join model a on a.id = t.model_a join model b on b.id = t.model_b;
create view spend as select campaign, coalesce(sum(coalesce(cost, reserved)), 0)::bigint nano, coalesce(sum(cost), 0)::bigint known,
  coalesce(sum(reserved) filter (where cost is null), 0)::bigint unknown, count(*) calls, count(*) filter (where fault = 0) answered, coalesce(sum(wait_ms), 0)::bigint wait_ms,
  coalesce(sum(input_tokens), 0)::bigint input_tokens, coalesce(sum(output_tokens), 0)::bigint output_tokens from attempt group by campaign;
