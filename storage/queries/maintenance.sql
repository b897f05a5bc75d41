-- Looking after a store. The queries of `check` return one row each: how many, and one of them in words.

-- name: check_trial_keys
select count(*), min(lower(hex(trial_key)) || ' stands ' || n || ' times') from (select trial_key, count(*) n from trial group by trial_key having n > 1);

-- name: check_trial_ids
-- Numbers that rise from row to row are all different, which is seen without a table of millions; only where they do not, they are counted.
select count(*), min('trial ' || id || ' stands ' || n || ' times') from (select id, count(*) n from trial
  where exists (select 1 from (select id, lag(id) over () before from trial) where id <= before) group by id having n > 1);

-- name: check_plan_trial
select count(*), min('ordinal ' || p.ordinal || ' of campaign ' || p.campaign || ' plans trial ' || p.trial) from plan p where not exists (select 1 from trial t where t.id = p.trial);

-- name: check_plan_campaign
select count(*), min('trial ' || p.trial || ' is planned for campaign ' || p.campaign) from plan p where not exists (select 1 from campaign c where c.id = p.campaign);

-- name: check_attempt_trial
select count(*), min('step ' || a.step || ' of trial ' || a.trial) from attempt a where not exists (select 1 from trial t where t.id = a.trial);

-- name: check_attempt_campaign
select count(*), min('trial ' || a.trial || ' was paid by campaign ' || a.campaign) from attempt a where not exists (select 1 from campaign c where c.id = a.campaign);

-- name: check_verdict_trial
select count(*), min('trial ' || v.trial) from verdict v where not exists (select 1 from trial t where t.id = v.trial);

-- name: check_verdict_reading
select count(*), min('trial ' || v.trial || ' by reading ' || v.reading) from verdict v where not exists (select 1 from reading r where r.id = v.reading);

-- name: check_trial_completion
select count(*), min('trial ' || t.id || ' shows completion ' || t.completion) from (select id, unnest(shown) completion from trial) t
  where not exists (select 1 from completion c where c.id = t.completion);

-- name: check_trial_sides
-- What a trial shows is of its instruction and, in a battle, of its models in their order.
select count(*), min('trial ' || t.id) from
  (select id, instruction, model_a, model_b, swapped, unnest(shown) completion, generate_subscripts(shown, 1) place from trial) t
  join completion c on c.id = t.completion where c.instruction <> t.instruction or c.model <> if((place = 1) = swapped, t.model_b, t.model_a);

-- name: check_trial_instruction
select count(*), min('trial ' || t.id || ' shows instruction ' || t.instruction) from trial t where not exists (select 1 from instruction i where i.id = t.instruction);

-- name: check_trial_respondent
select count(*), min('trial ' || t.id || ' asks respondent ' || t.respondent) from trial t where not exists (select 1 from respondent r where r.id = t.respondent);

-- name: check_failure_trial
select count(*), min('step ' || f.step || ' of trial ' || f.trial) from failure f where not exists (select 1 from trial t where t.id = f.trial);

-- name: check_judge_respondent
select count(*), min('judge ' || j.name || ' is respondent ' || j.respondent) from campaign_judge j where not exists (select 1 from respondent r where r.id = j.respondent);

-- name: check_completion_instruction
select count(*), min('completion ' || c.id || ' answers instruction ' || c.instruction) from completion c where not exists (select 1 from instruction i where i.id = c.instruction);

-- name: check_completion_model
select count(*), min('completion ' || c.id || ' is of model ' || c.model) from completion c where not exists (select 1 from model m where m.id = c.model);

-- name: check_plan_twice
-- `missing` would name such a trial twice. As above: a plan is written in the order of its trials, mostly.
with in_force as not materialized (select p.campaign, p.trial from plan p join campaign c on c.id = p.campaign join round r on r.campaign = p.campaign and r.number = p.round where p.round >= c.in_force)
select count(*), min('trial ' || trial || ' of campaign ' || campaign) from
  (select campaign, trial from in_force where exists (select 1 from (select campaign, trial, lag(campaign) over () earlier, lag(trial) over () before from in_force)
    where campaign < earlier or campaign = earlier and trial <= before) group by all having count(*) > 1);

-- name: check_round_trials
select count(*), min('round ' || r.number || ' of campaign ' || r.campaign || ' has ' || coalesce(p.n, 0) || ' of ' || r.trials || ' trials') from round r
  left join (select campaign, round, count(*) n from plan group by all) p on p.campaign = r.campaign and p.round = r.number where coalesce(p.n, 0) <> r.trials;

-- name: check_look_round
select count(*), min('look ' || l.number || ' at campaign ' || l.campaign || ' was after round ' || l.round) from look l
  where not exists (select 1 from round r where r.campaign = l.campaign and r.number = l.round);

-- name: check_verdict_attempt
-- A trial whose request was counted and not sent has none: its status is too_long, and its rule says so.
select count(*), min('trial ' || v.trial) from (select distinct trial from verdict where not (status = 5 and rule = 'context')) v where not exists (select 1 from attempt a where a.trial = v.trial);

-- name: check_verdict_twice
select count(*), min('trial ' || trial || ' by reading ' || reading) from (select trial, reading from verdict group by all having count(*) > 1);

-- name: check_verdict_cost
select count(*), min('trial ' || v.trial || ': ' || v.cost || ' nano-dollars in its verdict, ' || a.paid || ' in its attempts') from settled v
  join (select trial, sum(coalesce(cost, reserved))::bigint paid from attempt group by trial) a on a.trial = v.trial where a.paid <> v.cost;

-- name: check_attempt_numbers
select count(*), min('attempt ' || number || ' at step ' || step || ' of trial ' || trial) from (select trial, step, number from attempt group by all having count(*) > 1);

-- name: check_attempt_text
select count(*), min('step ' || step || ' of trial ' || trial) from attempt where fault = 0 and text is null;

-- name: check_settled_failed
select count(*), min('trial ' || f.trial) from failed_step f where exists (select 1 from verdict v where v.trial = f.trial);

-- name: check_one_order
select count(*), min('trial ' || trial) from (select min(t.id) trial from trial t join (select distinct trial from verdict) v on v.trial = t.id
  where t.model_a is not null group by t.respondent, t.instruction, list_sort(t.shown), t.repeat having count(distinct t.swapped) = 1);

-- name: check_unfinished_round
select count(*), min('round ' || round || ' of campaign ' || campaign) from (select distinct campaign, round from plan p where not exists (select 1 from round r where r.campaign = p.campaign and r.number = p.round));

-- name: check_ledger_running
select count(*), min('batch ' || batch || ' says ' || running || ', and the rows before it add up to ' || added) from
  (select batch, running, sum(written) over (order by batch, committed_at)::bigint added from ledger) where running <> added;

-- name: check_ledger_gaps
-- After a loss that was accepted numbers go on, and an event of the first batch then says so.
select count(*), min('batch ' || batch || ' follows batch ' || before) from (select batch, lag(batch, 1, 0) over (order by batch, committed_at) before from ledger) l
  where batch <> before + 1 and not exists (select 1 from event e where e.kind = 'commits lost' and e.batch = l.batch);

-- name: check_ledger_rows
select count(*), min('batch ' || b.batch || ' has ' || b.n || ' rows, and the ledger ' || coalesce('counts ' || l.written, 'does not list it')) from
  (select batch, count(*) n from (select batch from trial union all select batch from plan union all select batch from attempt union all select batch from verdict
    union all select batch from failure union all select batch from event union all select batch from vote union all select batch from gold
    union all select batch from submission union all select batch from submission_line union all select batch from submission_event) group by batch) b
  left join (select batch, sum(written) written from ledger group by batch) l on l.batch = b.batch where l.written is null or b.n > l.written;

-- name: check_submission_campaign
select count(*), min('batch ' || s.name) from submission s
  where not exists (select 1 from campaign c where c.id = s.campaign) or not exists (select 1 from lane n where n.id = s.lane);

-- name: check_submission_twice
select count(*), min('batch ' || name) from (select name, count(*) over (partition by id) ids, count(*) over (partition by name) names from submission) where ids > 1 or names > 1;

-- name: check_submission_lines
select count(*), min('batch ' || s.name || ' has ' || coalesce(l.n, 0) || ' of ' || s.lines || ' lines, and ' || coalesce(l.nano, 0) || ' of ' || s.reserved || ' nano-dollars') from submission s
  left join (select submission, count(*) n, sum(reserved)::bigint nano from submission_line group by submission) l on l.submission = s.id
  where coalesce(l.n, 0) <> s.lines or coalesce(l.nano, 0) <> s.reserved;

-- name: check_submission_trial
select count(*), min('step ' || l.step || ' of trial ' || l.trial) from submission_line l where not exists (select 1 from trial t where t.id = l.trial);

-- name: check_submission_event
select count(*), min(e.kind || ' of batch number ' || e.submission) from submission_event e where not exists (select 1 from submission s where s.id = e.submission);

-- name: check_submission_collected
select count(*), min('step ' || l.step || ' of trial ' || l.trial) from submission_line l
  where exists (select 1 from submission_event e where e.submission = l.submission and e.kind = 'collected')
  and not exists (select 1 from attempt a where a.trial = l.trial and a.step = l.step and a.number = l.number);

-- name: check_submission_out
select count(*), min('trial ' || trial) from (select l.trial from submission_line l join open_submission s on s.id = l.submission
  where not exists (select 1 from attempt a where a.trial = l.trial and a.step = l.step and a.number = l.number) group by l.trial having count(*) > 1);

-- name: check_unfinished_submission
select count(*), min('step ' || l.step || ' of trial ' || l.trial) from submission_line l where not exists (select 1 from submission s where s.id = l.submission);

-- name: check_open_submission
select count(*), min('batch ' || name) from open_submission;

-- name: check_spend
-- The view against the rows.
select count(*), min('campaign ' || a.campaign || ': ' || a.nano || ' nano-dollars in its attempts, ' || coalesce(s.nano, 0) || ' in its accounts') from
  (select campaign, sum(case when cost is null then reserved else cost end)::bigint nano from attempt group by campaign) a
  left join spend s on s.campaign = a.campaign where s.nano is distinct from a.nano;

-- name: check_instruction_keys
select instruction_key, turns, external_id from instruction;

-- name: check_prompt_digests
select digest, text, name from prompt;

-- name: check_suspicion_completion
select count(*), min('suspicion of completion ' || s.completion) from suspicion s where not exists (select 1 from completion c where c.id = s.completion);

-- name: check_completion_keys
-- Every n-th completion, whole.
select c.completion_key, m.name, i.instruction_key, c.sample, c.variant, c.text, c.id from completion c join model m on m.id = c.model join instruction i on i.id = c.instruction where c.id % $every = 0;

-- name: check_trial_digests
-- Every n-th trial with the keys that its own is made of.
select t.trial_key, r.respondent_key, i.instruction_key, t.repeat,
    (select coalesce(list(c.completion_key order by s.place), []) from (select unnest(t.shown) completion, generate_subscripts(t.shown, 1) place) s join completion c on c.id = s.completion), t.id
  from trial t join respondent r on r.id = t.respondent join instruction i on i.id = t.instruction where t.id % $every = 0;

-- name: check_sizes
select (select count(*) from trial), (select count(*) from attempt), (select count(*) from completion);

-- name: check_paid
-- What every campaign paid, in nano-dollars.
select c.name, coalesce(sum(coalesce(a.cost, a.reserved)), 0)::bigint, count(a.trial) from campaign c left join attempt a on a.campaign = c.id group by c.name order by c.name;
