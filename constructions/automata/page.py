"""docs/automata.md and `construct reproduce languages`: named languages and random automata, and what came out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from constructions.command.display import console, progress, say
from constructions.command.reporting import strict_json, table_of, verdict
from constructions.experiments.names import MIXERS, WHAT
from constructions.experiments.table_files import TableFiles

FEW = 64  # elements of a monoid: every star-free language of so few is to be proved on Mamba

HEAD = """# Every regular language

    construct automaton --regex '(a|b)*abb' --explain
    4 states (5 as written, before equal ones are joined), 7 elements,
    star-free (Schützenberger 1965), 2 resets (Krohn and Rhodes 1965).
    Mamba: 3 blocks, every length. Mamba-2: at most 5 blocks, every length.
    …
    Gated DeltaNet: 3 resets, every length (Krohn and Rhodes 1965).
    construct automaton --regex '(a|b)*abb' --out out/abb

The first says what the language is, and which mixer can hold it for how long. The second writes the checkpoint, which
answers `yes` or `no` behind every letter, and proves it: from the weights, for every sequence of every length.

## An automaton of your own

A language is a regular expression, a table, or a name (`--name tomita-4`; all names stand in the table below). Letters
of an expression are single characters. Where texts have letters that it does not name, `--letters abc` lists all; an
expression with a letter beside these is refused. It is held against whole words, and may have `|`, `( )`, `*`, `+`,
`?`, `{3}`, `{1,3}`, `{,3}`, `{1,}`, `[a-c]`, `[^a]`, `.` (any letter), `&` (both sides) and `^` (the letters of both
sides, mixed). Refused is what not all readers read alike: two signs of repetition in a row (`a+?`), different ones of
`|`, `&` and `^` side by side without parentheses, `{0}`, a range from last to first, and `$`, for which the letter is
written `[$]`.

```json
{"start": "low", "classes": {"low": "L", "high": "H"},
 "transitions": {"low": {"up": "high", "down": "low"}, "high": {"up": "high", "down": "low"}}}
```

`construct automaton --table FILE` takes this. With `"accept": ["high"]` in the place of `classes` the answers are `yes`
and `no`. `--length 1000` promises less than every length; `--arch mamba2` and `--arch gated-deltanet` take another
mixer.

In a circuit the state is a stream like any other:

```python
from compiler import Alphabet, Tokens, automaton, count

x = Tokens(Alphabet.of("a", "b", "c", "yes", "no"))
alternates = automaton("(ab)*", x)  # a flag; c is no letter of it and leaves it as it is
door = {"shut": {"a": "open", "b": "shut"}, "open": {"a": "open", "b": "shut"}}
state = automaton(door, x, start="shut")  # a OneHot: state[1] is 1 while the door is open
through = count(x.is_in("c") & state[1], reset=state[0])  # how often c since it opened
```

## What a monoid is

Every word maps each state to the state behind it. The maps of all words, of which there are finitely many, are the
*transition monoid*. Some words put different states together: a *reset* puts all of them into one. Others permute
states around a circle, as `a` does with the states *even* and *odd* of "an even number of a's". Such a word and its
powers are a *group*. An automaton whose monoid holds no group (but {1}) is **star-free** (Schützenberger 1965): its
language can be written with ∪, · and complement, without the star.

Krohn and Rhodes (1965) take every automaton apart into a *cascade*: levels, each of which reads those above it. Without
groups each level is a reset: it keeps a small number until the letter, and what stands above, set it anew.

    letter ──┬────────────┬────────────┬───────────┐
             ▼            ▼            ▼           ▼
          level 0 ──▶  level 1 ──▶  level 2 ──▶  answer
          a latch      a latch      a latch      a table

A reset is what a state of Mamba keeps exactly and for ever: h ← exp(−Δ)·h + Δ·B·x̂ with Δ = 0, which leaves h bit for
bit, or Δ = 128, which erases it. What a level sets, and whether, are tables of one number, the letter and the levels
above, and tables are sums of ramps relu(x − k). A latch is linear in what it stores, so each ramp is latched by itself,
in the block that makes it: **one block for each level, and one for the answer**. On Mamba-2 no rectified number reaches
Δ within a block, so a level takes two.

![The states of the levels over time](figures/automaton-state.png)

A group would need a state that turns: an eigenvalue below 0, or a complex one. Gated DeltaNet has reflections, and
holds groups [for every length](groups.md). Mamba and Mamba-2 have none, so on these two

- **star-free**: compiled, and proved for every length. At fixed precision a diagonal non-negative state-space model
  holds exactly these (Sarrof, Veitsman and Hahn 2024).
- **letters that permute all states and commute** (parity holds C_2): a count of each, modulo a number. That takes a
  threshold for each multiple, so the length is bounded: `--length 500`, three blocks, proved.
- **resets, and levels that are each moved by powers of one permutation** (C_2 beside resets, as in `tomita-3`): a count
  of the powers, modulo the order, whatever is reset; a reset latches what the count must make of it. Bounded likewise.
- **another group that can be solved** (S_3, S_4): taken apart into cyclic groups, one on the other. Each is a count,
  which chooses how the next one is moved. Bounded likewise, where a level's group has at most 256 elements.
- **a group that cannot** (A_5): refused. Its word problem is complete for NC^1 (Barrington 1989; Merrill, Petty and
  Sabharwal 2024).

For every length all groups take other eigenvalues (Grazzi et al. 2024).

## What is proved

That the weights compute the circuit exactly, that the circuit answers what the automaton answers, and that every
special token scores below; all of it for every length, as [the proofs](proofs.md) tell (*latches of one flag*, *every
length*). The checker knows the table as you gave it and nothing of its decomposition: it walks circuit and automaton
side by side over all that can be reached.

Caps, each with a sentence: 2^17 states of a regular expression as it is written, counted before they are made (`&` and
`^` multiply those of their sides); 4,096 states; 65,536 elements of the monoid, and 2^23 elements × states (beyond,
groups that were met are told); 4,096 sets of states that words lead to, and 2,048 with each state alone among them
where they are taken apart; 2^18 states × levels × letters of a cascade; 2^18 situations that the proof goes through.

## Languages of the literature

    construct reproduce languages --keep docs/automata.json --page docs/automata.md

writes this page, and runs what the file does not hold yet.

"""
BUILT = """
What each mixer makes of them. *Blocks / d_model*: of the bare model. *Letters, wrong*: how many letters the language
model read, and how many answers were wrong. It ran as modules of mamba_ssm or ours, chunk by chunk: 8 random words of
500 letters and 2 of 10,000; on Mamba one of 100,000; in {longest} rows, those with more than 1,000,000 letters, one of
1,000,000; where a length is promised, words of that length at most. Half of the words are uniform; in the others most
letters leave more than one answer possible.
*Proved*: weights and answers, for as long as promised. Several counts beside each other have more situations than the
checker goes through: there the weights are proved, and the answers tested. {missing}

"""
RANDOM = """
## Random automata

The command also draws {count} automata of 2 to 8 states over two or three letters, uniformly. {alike} answer every
word alike. {star_free} are star-free, {solvable} hold groups that can all be solved, {hard} hold one that cannot. Their
checkpoints are loaded and run by transformers, beside a plain walk through the table. *Held*: how many of the {count}
the mixer holds for every length, and beside these how many this compiler follows to a bounded one.

| mixer | held | bounded | built | blocks | d_model | words × letters of each | letters | wrong |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
{rows}

Those that are held for every length are built, among the first {numbers}.
Automata that answer every word alike read 2 × 100 letters.

**Proofs.** Weights and answers are proved on Mamba, for every length, of {small_proved} of the {small} star-free ones
that have at most {few} elements, and of {large_proved} of the {large} larger ones.

**Long texts.** Each automaton that a mixer holds for every length is to read one text of {length:,} letters through
transformers: on Mamba where that holds it, in one call, else on Gated DeltaNet, {piece:,} letters at a time, the cache
carried on. The smallest circuits come first, and

    construct reproduce languages --keep docs/automata.json --page docs/automata.md --minutes 30

goes on for 30 CPU minutes more. Automata that are the same when states that nothing tells apart are joined have the
same weights, and a text that one of them read counts for all. So far {read} of {count} are through, {wrong} answers
wrong. Refused when compiled: {refused}, each with its reason in docs/automata.json, most often that products of many
levels outgrow float32. Shorter texts only: {shorter}. None yet: {never}. Built on no mixer for every length, as its
levels are too many or too large: {nowhere}.

| mixer | to read | through | texts | blocks | d_model | letters | wrong | refused | CPU s |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
{long_rows}
"""


TRAINED = """
## Trained models beside them

A row is one Mamba of transformers that began with random weights, beside the compiled model on Mamba: {budget}.
It is asked behind every letter, on words of the kind above that it was not trained on: {tests}. *Common*: the share of
the most frequent answer, which a model gets that always says it.

    construct reproduce languages --keep docs/automata.json --page docs/automata.md --train

{controls}
What others published, in percent of right answers: {source}.
There words of at most 40 letters were trained on, words of 41 to 500 tested, and a word is asked once, at its end.
*Mamba*: with two blocks, by its width; the other two are as that table gives them from Delétang et al. 2022.

{published}
The tables of Sarrof et al. 2024, Grazzi et al. 2024 and Bhattamishra et al. 2020 are not quoted: their full
texts were not at hand.
"""


def page(rows: list[dict[str, Any]], drawn: list[dict[str, Any]], controls: dict[str, dict[str, Any]]) -> str:
    """The whole page."""
    longest = sum("1 x 1000000" in row.get("wrong", {}) for row in rows)
    built = BUILT.format(longest=longest, missing=_missing(rows))
    return HEAD + _algebra(rows) + built + _mixers(rows) + _random(drawn) + _trained(rows, controls)


def _algebra(rows: list[dict[str, Any]]) -> str:
    """Each language once."""
    lines = []
    for row in {row["name"]: row for row in rows}.values():
        what = f"`{row['name']}`: {row['what'].replace('|', chr(92) + '|')}"
        groups = ", ".join(row["groups"]) or "none"
        lines.append((what, row["source"], row["states"], row["monoid"] or "–", groups, _shown(row["levels"])))
    return _lined(("language", "source", "states", "monoid", "groups", "resets"), lines)


def _mixers(rows: list[dict[str, Any]]) -> str:
    """Each language on each mixer."""
    heads = ("language", "mixer", "blocks / d_model", "promise", "proved", "letters, wrong")
    return _lined(heads, [(f"`{row['name']}`", MIXERS[row["arch"]], *_built(row)) for row in rows])


def _missing(rows: list[dict[str, Any]]) -> str:
    """Which rows were not run."""
    from constructions.automata.reproduce import names

    run = {f"{row['name']} {row['arch']}" for row in rows}
    left = [name.split() for name in names() if name not in run]
    if not left:
        return "Every row was run."
    said = ", ".join(f"`{name}` on {MIXERS[arch]}" for name, arch in left)
    return f"{len(left)} of {len(run) + len(left)} rows were not run: {said}."


def _trained(rows: list[dict[str, Any]], controls: dict[str, dict[str, Any]]) -> str:
    """Trained controls of ours, and published figures."""
    from constructions.automata.controls import BUDGET, PUBLISHED, TESTS, ZITZEWITZ

    compiled = {row["name"]: _right(row) for row in rows if row["arch"] == "mamba"}
    heads = ("language", "compiled", *(f"trained: {n:,} letters" for n in TESTS), f"common, {max(TESTS):,}", "CPU s")
    lines = [
        (f"`{name}`", compiled.get(name, "–"), *(f"{one['accuracy'][str(n)]:.3f}" for n in TESTS))
        + (f"{one['common'][str(max(TESTS))]:.3f}", f"{one['trained_in']:.0f}")
        for name, one in controls.items()
    ]
    models = list(next(iter(PUBLISHED.values())))
    published = [(f"`{name}`", *(f"{told[model]:.1f}" for model in models)) for name, told in PUBLISHED.items()]
    return TRAINED.format(
        budget=BUDGET,
        tests=", ".join(f"{count} of {length:,} letters" for length, count in TESTS.items()),
        controls=_lined(heads, lines) if lines else "None has been trained yet.\n",
        source=ZITZEWITZ,
        published=_lined(("language", *models), published),
    )


def _right(row: dict[str, Any]) -> str:
    """The share of right answers of what was compiled, and to how many letters it was run."""
    if "refused" in row:
        return "refused"
    longest = max(int(run.split(" x ")[1]) for run in row["wrong"])
    share = 1 - sum(row["wrong"].values()) / sum(map(letters_of, row["wrong"]))
    return f"{share:.3f} to {longest:,}"


def _lined(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads)]
    lines += [f"| {' | '.join(map(str, row))} |" for row in rows]
    return "\n".join(lines) + "\n"


def _shown(value: object) -> object:
    return "–" if value is None else value


def _built(row: dict[str, Any]) -> tuple[str, str, str, str]:
    if "refused" in row:
        return "refused", row["refused"], "", ""
    proved = row.get("proved")
    said = "not asked" if proved is None else "yes" if all(proved.values()) else _parts(proved)
    length = "every length" if row["length"] is None else f"to {row['length']:,} letters"
    return f"{row['blocks']} / {row['d_model']}", length, said, _letters(row["wrong"])


def _letters(wrong: dict[str, int]) -> str:
    return f"{sum(map(letters_of, wrong)):,}, {sum(wrong.values())}"


def letters_of(run: str) -> int:
    """How many letters a run has, of its name "words x letters"."""
    count, length = run.split(" x ")
    return int(count) * int(length)


def _parts(proved: dict[str, bool]) -> str:
    left = [part for part, held in proved.items() if not held]
    if len(left) == len(proved):
        return "no: only tested"
    return "weights, not the answers" if left == ["task"] else f"all but {', '.join(left)}"


def _random(drawn: list[dict[str, Any]]) -> str:
    if not drawn:
        return ""
    from constructions.automata.random_automata import LONG, PIECE, RUNS, long_on

    held = [row for row in drawn if long_on(row) is not None]
    long = [row for row in held if "wrong" in row.get("long", {})]
    left = [row for row in held if "long" not in row]
    star_free = [row for row in drawn if row["star_free"] is True]
    small = sum(row["monoid"] <= FEW for row in star_free)
    proved = [row for row in star_free if "proved" in row and all(row["proved"].values())]
    small_proved = sum(row["monoid"] <= FEW for row in proved)
    shorter = sum(any("wrong" in one for one in row["built"].values()) for row in left)
    return RANDOM.format(
        count=len(drawn),
        length=LONG,
        piece=PIECE,
        read=len(long),
        wrong=sum(row["long"]["wrong"] for row in long),
        refused=sum("refused" in row.get("long", {}) for row in held),
        shorter=shorter,
        never=len(left) - shorter,
        nowhere=len(drawn) - len(held),
        long_rows="\n".join(_of_long(arch, held) for arch in ("mamba", "gated-deltanet")),
        alike=sum(row["states"] == 1 for row in drawn),
        star_free=len(star_free),
        few=FEW,
        small=small,
        small_proved=small_proved,
        large=len(star_free) - small,
        large_proved=len(proved) - small_proved,
        solvable=sum(1 for row in drawn if row["groups"] and row["solvable"]),
        hard=sum(1 for row in drawn if not row["solvable"]),
        rows="\n".join(_of_mixer(arch, drawn) for arch in RUNS),
        numbers=", ".join(f"{most} on {MIXERS[arch]}" for arch, (most, *_) in RUNS.items()),
    )


def _of_mixer(arch: str, drawn: list[dict[str, Any]]) -> str:
    """The line of a mixer: what it holds of the random automata, what was built and run."""
    from constructions.automata.random_automata import RUNS

    held = [row["holds"][arch] for row in drawn if arch in row["holds"]]
    built = [row["built"][arch] for row in drawn if "blocks" in row["built"].get(arch, {})]
    runs = [(name, wrong) for one in built for name, wrong in one["wrong"].items()]
    sizes = [f"{min(one[key] for one in built)}–{max(one[key] for one in built)}" for key in ("blocks", "d_model")]
    letters, wrong = sum(letters_of(name) for name, _ in runs), sum(wrong for _, wrong in runs)
    forever, (_, count, length) = held.count(None), RUNS[arch]
    cells = (f"{forever} ({forever / len(drawn):.0%})", len(held) - forever, len(built), *sizes)
    return f"| {' | '.join(map(str, (MIXERS[arch], *cells, f'{count} × {length:,}', f'{letters:,}', wrong)))} |"


def _of_long(arch: str, held: list[dict[str, Any]]) -> str:
    """The line of a mixer: how many automata have read their long text there, and how that went."""
    from constructions.automata.random_automata import long_on

    own = [row.get("long", {}) for row in held if long_on(row) == arch]
    read = [one for one in own if "wrong" in one]
    sizes = [_span([one[key] for one in read]) for key in ("blocks", "d_model")]
    run = [one for one in read if "as" not in one]
    letters, wrong, seconds = (sum(one[key] for one in run) for key in ("letters", "wrong", "cpu_s"))
    refused = sum("refused" in one for one in own)
    cells = (MIXERS[arch], len(own), len(read), len(run), *sizes, f"{letters:,}", wrong, refused, f"{seconds:,.0f}")
    return f"| {' | '.join(map(str, cells))} |"


def _span(numbers: list[int]) -> str:
    return f"{min(numbers)}–{max(numbers)}" if numbers else "–"


def reproduce(
    only: list[str],
    seed: int,
    keep: Path | None,
    page_at: Path | None,
    files: TableFiles,
    as_json: bool,
    minutes: float = 0,
    train: bool = False,
) -> None:
    """Run what the file of results does not hold, and show or write all of it; exit code 1 where an answer is wrong.

    minutes: for so many CPU minutes random automata read long texts; train: train the controls that are missing.
    """
    from constructions.automata.random_automata import RANDOM as COUNT
    from constructions.automata.reproduce import Run, kept_controls, kept_long, kept_random, kept_rows, names

    with progress(quiet=as_json) as bars:
        rows = _counted(bars("languages", len(only or names())), kept_rows(keep, only, Run(seed)))
        drawn = [] if only else _counted(bars("random automata", COUNT), kept_random(keep, COUNT))
        if minutes and keep and not only:
            with bars.stage(f"long texts, {minutes:g} CPU minutes"):
                drawn = kept_long(keep, minutes)
        with bars.stage("controls"):
            controls = kept_controls(keep, train)
    if page_at:
        page_at.write_text(page(rows, drawn, controls), "utf-8")
    files.write_records(WHAT["languages"], rows)
    good = all(row["good"] for row in rows) and not any(wrong_of(row) for row in drawn)
    if as_json:
        say(strict_json({"rows": rows, "random": drawn, "controls": controls, "good": good}))
    else:
        shown = ("name", "arch", "states", "monoid", "levels", "blocks", "d_model")
        console.print(table_of([dict.fromkeys(shown) | row for row in rows], shown, tight=True))
    verdict(good)


def wrong_of(row: dict[str, Any]) -> int:
    """The wrong answers of a random automaton, on all mixers."""
    short = sum(wrong for one in row["built"].values() for wrong in one.get("wrong", {}).values())
    return short + row.get("long", {}).get("wrong", 0)


def _counted(advance: Callable[[int], None], rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for row in rows:
        found.append(row)
        advance(1)
    return found
