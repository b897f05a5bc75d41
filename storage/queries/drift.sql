-- name: served_models
-- Per judge of what is in force: each name under which its replies were served, how many, and when first and last (UTC).
select cj.name, a.served_model, count(*), strftime(min(a.sent_at)::timestamp, '%Y-%m-%dT%H:%MZ'), strftime(max(a.sent_at)::timestamp, '%Y-%m-%dT%H:%MZ')
  from attempt a join planned p on p.trial = a.trial join trial t on t.id = a.trial join campaign_judge cj on cj.campaign = p.campaign and cj.respondent = t.respondent
  where p.campaign = $campaign and a.fault = 0 and a.served_model <> '' group by all order by cj.name, min(a.sent_at), a.served_model;

-- name: served_fingerprints
-- Per judge of what is in force: how many fingerprints came with its replies, and the newest.
select cj.name, count(distinct a.fingerprint), arg_max(a.fingerprint, a.sent_at)
  from attempt a join planned p on p.trial = a.trial join trial t on t.id = a.trial join campaign_judge cj on cj.campaign = p.campaign and cj.respondent = t.respondent
  where p.campaign = $campaign and a.fault = 0 and a.fingerprint <> '' group by cj.name order by cj.name;
