"""The pages of a store: what a browser shows of campaigns, calls and boards, rendered here as HTML."""
