-- name: begin_reading
begin transaction read only;

-- name: syntax_tree
-- A SELECT as a tree, in which the functions that it reads from are named.
select json_serialize_sql($text::varchar);

-- name: memory_in_use
-- What queries and transactions hold, in bytes; pages of the file can be given up at any time and do not count.
select coalesce(sum(memory_usage_bytes), 0)::bigint from duckdb_memory() where tag <> 'BASE_TABLE';

-- name: relations
-- Tables and views with their columns, for who writes a query.
select c.table_name, case when v.view_name is null then 'table' else 'view' end kind, list(c.column_name order by c.column_index) columns,
  list(lower(c.data_type) order by c.column_index) types
  from duckdb_columns() c left join duckdb_views() v on v.database_name = c.database_name and v.schema_name = c.schema_name and v.view_name = c.table_name
  where c.database_name = current_database() and not c.internal group by 1, 2 order by kind desc, 1;
