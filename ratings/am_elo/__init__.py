"""am-ELO: ratings with an ability for each judge, and robustness to bad judges."""
