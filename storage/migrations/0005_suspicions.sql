-- Completions that try to instruct their judge, and by which rules they were looked for.
-- One row, or none: the digest of the rules, and the number of the last completion that was looked at.
create table screening (rules blob not null, last integer not null, screened_at timestamptz not null);
-- rule: the name of what raised the suspicion. No primary key: rows of older rules are replaced within one transaction.
create table suspicion (completion integer not null, rule varchar not null);
