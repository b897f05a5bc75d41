-- name: insert_store
-- The one row that says what this file is.
insert into store values ($format, gen_random_uuid(), $version, $now);

-- name: read_store
select format, store_id::varchar from store;

-- name: update_format
update store set format = $format;

-- name: insert_migrations
insert into migration select unnest($numbers), unnest($names), $now;

-- name: tables
-- What is in the file before anything is asked of it: none for a new one, `store` for one of ours.
select table_name from duckdb_tables() where database_name = current_database() and not internal;

-- name: last_batch
select coalesce(max(batch), 0), coalesce(max(running), 0), coalesce(sum(written), 0) from ledger;

-- name: insert_ledger
insert into ledger values ($batch, $now, $written, $running);

-- name: events_of_kind
-- What was noted in events of a kind, in the order noted.
select detail from event where kind = $kind order by batch;

-- name: insert_event
insert into event values ($now, $campaign, $kind, $detail, $batch);

-- name: recovered
-- What openings of the store found that an earlier run had left, since the last run that ended with notice.
select kind, detail from event where kind in ('recovered', 'commits lost') and batch > (select coalesce(max(batch), -1) from event where kind = 'run ended') order by batch;

-- name: counts
-- What a store holds, for `venire status`.
select (select count(*) from instruction), (select count(*) from completion), (select count(*) from model),
  (select count(*) from model where elo is not null), (select count(*) from attempt), (select count(distinct trial) from verdict);
