"""Random programs over the whole language: each is exact on the real modules, or refused with a reason.

`python -m tests.fuzz --programs 1000` runs some; `make fuzz N=1000` does the same.

    kinds.py       what a stream holds, and the random choices that every word draws from
    words/         the words of the language: how each is written, what it takes and gives, what it means
    language.py    input languages as data, and sequences of them
    program.py     a program: its text, the circuit that the text builds, and what it means on a sequence
    generate.py    random programs
    run.py         one program on targets × dtypes × forms: exact, refused, wrong, crash or hang
    shrink.py      the least program that fails in the same way
    report.py      counts over many programs

The meanings are written from the documentation alone, in integers and Fractions, and share no code with the
compiler's interpreter: they walk the program, never a circuit.
"""
