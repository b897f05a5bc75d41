"""Make boards and audits from verdicts in a store or in a table."""
