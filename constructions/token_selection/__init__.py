"""Paper D: dynamic token selection, recall, induction, copying, and the lemmas they rest on."""
