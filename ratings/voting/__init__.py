"""Orders by votes: Kemeny-Young, voting rules, and intervals of positions."""
