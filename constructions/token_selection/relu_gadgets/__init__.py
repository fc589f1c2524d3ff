"""Functions as ReLU networks of explicit size, each within a proved error: Lemmas F.1–F.6, H.1, H.3 and 3.3 of paper
D.

The lemmas' formulas are lost in the text that we read; here every constant is ours and written out, with its proof
where the network is made. What some of them are about is restored as well: y/x of F.4, the soft maximum of F.1, cos as
periodic in F.3, and the ±1/√k and 1/2 of H.1.
"""
