"""am-ELO: ratings with an ability for each judge, and what removing judges does."""
