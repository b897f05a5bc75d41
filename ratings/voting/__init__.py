"""Orders by votes: Kemeny-Young, rules of majorities, scores and walks, with their intervals."""
