"""From verdicts in a store or in a table to a board or an audit."""
