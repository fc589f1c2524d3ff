"""Functions as ReLU networks of explicit size, each within a proved error: Lemmas F.1–F.6, H.1, H.3 and 3.3 of paper
D.

The lemmas' formulas are lost in the text that we read; here every constant is ours and written out, with its proof
where the network is made.
"""
