"""The algebra of finite automata: minimal tables, transition monoids, groups, and cascades of resets and swaps.

A room of its own: nothing here knows streams, blocks or weights but `stream`, which builds a circuit of a cascade.

    signs      what a regular expression may hold, and its letters
    regex      a regular expression to a table
    table      a complete automaton with an output for each state; the minimal one
    monoid     all maps of states that words make
    images     the sets of states that words lead to; the permutations on them, of which the groups are made
    groups     names of groups, and whether they can be solved
    holonomy   a cascade of resets, and of permutations where there are groups, that follows an automaton
    cascade    such a cascade as data; made smaller; checked against its automaton
    splitting  levels that are permuted, replaced by some that need fewer swaps (degrees, parts, permutations)
    turning    such levels by states that are moved by one swap of two places a letter
    stream     the cascade as a circuit

Names: a *letter* is one symbol, q or s a state, w a word; s·w is the state behind w, X·w the set of these for s in X.
"""
