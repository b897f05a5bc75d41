-- name: first_forecast
-- What was expected when the plan in force was first run.
select e.detail from event e join campaign c on c.id = e.campaign join round r on r.campaign = c.id and r.number = c.in_force
  where e.campaign = $campaign and e.kind = 'forecast' and e.happened_at >= r.planned_at order by e.happened_at limit 1;
