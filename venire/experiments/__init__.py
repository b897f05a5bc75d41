"""A campaign run many times over by simulated judges: what each choice would buy."""
