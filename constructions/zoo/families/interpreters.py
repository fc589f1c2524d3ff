"""Small interpreters: calculators with a stack, registers, robots, queues, and machines with buttons."""

from __future__ import annotations

from compiler import (
    Alphabet,
    InputLanguage,
    Tokens,
    automaton,
    emit,
    latch,
    memory,
    readout_integer,
    readout_one_hot,
    running_max,
    select,
)
from constructions.zoo.entry import Family, Own, sizes
from constructions.zoo.families.counting import Made, numerals
from constructions.zoo.machine import Machine

DIGITS = tuple("0123")
NAMES = ("x", "y")


def calculator(deep: int, length: int) -> Made:
    """A digit is pushed, `+` adds the two numbers on top. What is on top is the sum of all digits, less the same sum
    when the stack was last one lower.
    """
    sums = numerals(3 * (length + 1) // 2)
    alphabet = Alphabet.of("+", *sums)
    x = Tokens(alphabet)
    height = x.number(dict.fromkeys(DIGITS, 1) | {"+": -1}, name="step").cumsum().named("height")
    total = x.number({d: int(d) for d in DIGITS}, name="digit").cumsum().named("total")
    at = height.one_hot(deep + 1)
    below = memory.write(at, total, policy="last", name="totals").read((height - 1).one_hot(deep + 1))
    edges = [(str(h), str(h + 1), DIGITS) for h in range(deep)] + [
        (str(h), str(h - 1), ["+"]) for h in range(2, deep + 1)
    ]
    language = InputLanguage.of(alphabet, "0", edges, length, f"digits and +, at most {deep} numbers on the stack")
    return readout_integer((total - below).named("top"), alphabet, sums), language


def pushes_and_pops(deep: int) -> Made:
    """A stack of digits: what is on top, - where there is nothing."""
    alphabet = Alphabet.of(*DIGITS, "pop", "-")
    x = Tokens(alphabet)
    height = x.number(dict.fromkeys(DIGITS, 1) | {"pop": -1}, name="step").cumsum().named("height").one_hot(deep + 1)
    held = memory.write(height, x.one_hot(*DIGITS), when=x.is_in(*DIGITS), policy="last", name="stack")
    edges = [(str(h), str(h + 1), DIGITS) for h in range(deep)] + [(str(h + 1), str(h), ["pop"]) for h in range(deep)]
    language = InputLanguage.of(alphabet, "0", edges, 64, f"digits and pops, at most {deep} on the stack")
    return readout_one_hot(held.read(height), alphabet, DIGITS, otherwise="-"), language


def truth_stack() -> Made:
    """t and f are pushed, & and | take two truths and push one; at most two stand on the stack. Its four states with
    two truths, two with one and the empty one are a finite automaton.
    """
    alphabet = Alphabet.of("t", "f", "&", "|", "yes", "no", "-")
    moves: dict[str, dict[str, str]] = {}
    for state in ("", "t", "f", "tt", "tf", "ft", "ff"):
        moves[state or "none"] = {a: (state + a if len(state) < 2 else state) or "none" for a in "tf"}
        for symbol, word in (("&", "t"), ("|", "f")):
            joined = (word if state == 2 * word else "f" if word == "t" else "t") if len(state) == 2 else state
            moves[state or "none"][symbol] = joined or "none"
    state = automaton(moves, Tokens(alphabet), start="none")
    top = {name: name[-1] for name in moves if name != "none"}
    rules = [(state[i], "yes" if top[name] == "t" else "no") for i, name in enumerate(moves) if name in top]
    return emit(alphabet, *rules, otherwise="-"), InputLanguage.everything(alphabet, None, ("t", "f", "&", "|"))


def registers() -> Made:
    """NAME DIGIT loads a register, show NAME asks for what was loaded into it last."""
    alphabet = Alphabet.of(*NAMES, *DIGITS, "show", "-")
    x = Tokens(alphabet)
    name, digit = x.one_hot(*NAMES, name="name"), x.one_hot(*DIGITS, name="digit")
    loads = (x.is_in(*NAMES).shift(1) & x.is_in(*DIGITS)).named("loads")
    value = memory.write(name.shift(1), digit, when=loads, policy="last", name="registers").read(name)
    edges = [
        ("start", "name", NAMES),
        ("name", "start", DIGITS),
        ("start", "asked", ["show"]),
        ("asked", "start", NAMES),
    ]
    language = InputLanguage.of(alphabet, "start", edges, None, "NAME DIGIT, or show NAME")
    shown = x.is_in("show").shift(1).named("shows")
    rules = [(value[i] + shown >= 2, digit) for i, digit in enumerate(DIGITS)]
    return emit(alphabet, *rules, otherwise="-"), language


def accumulator(most: int) -> Made:
    """`set` DIGIT, `add` DIGIT, `sub` DIGIT: the number in the accumulator."""
    values = {str(n): n for n in range(-3 * most, 3 * most + 1)}
    alphabet = Alphabet.of("set", "add", "sub", *values)
    x = Tokens(alphabet)
    digit = x.number({d: int(d) for d in DIGITS}, name="digit")
    does = {word: x.is_in(word).shift(1).named(f"does_{word}") for word in ("set", "add", "sub")}
    total = (select(does["add"], digit) - select(does["sub"], digit)).cumsum().named("total")
    before = latch(total - digit, when=does["set"]).named("zero_point")
    edges = [("word", "digit", ("set", "add", "sub")), ("digit", "word", DIGITS)]
    language = InputLanguage.of(alphabet, "word", edges, 2 * most, "set, add or sub, each with a digit")
    return readout_integer((total - before).named("accumulator"), alphabet, values), language


def robot(most: int) -> Made:
    """Where a robot on a line is, between two walls that stop it: in 0 … most."""
    moves = {"left": -1, "right": 1}
    alphabet = Alphabet.of(*moves, *numerals(most))
    places = [str(n) for n in range(most + 1)]
    table = {p: {"left": places[max(0, n - 1)], "right": places[min(most, n + 1)]} for n, p in enumerate(places)}
    state = automaton(table, Tokens(alphabet), start="0")
    return readout_one_hot(state, alphabet, places), InputLanguage.everything(alphabet, None, tuple(moves))


def walker(most: int) -> Made:
    """How far from home a walker on a grid is, in steps."""
    digits = numerals(most)
    alphabet = Alphabet.of("n", "s", "e", "w", *digits)
    x = Tokens(alphabet)
    north = x.number({"n": 1, "s": -1}, name="northward").cumsum().named("north")
    east = x.number({"e": 1, "w": -1}, name="eastward").cumsum().named("east")
    steps = (north.relu() + (-north).relu() + east.relu() + (-east).relu()).named("distance")
    return readout_integer(steps, alphabet, digits), InputLanguage.everything(alphabet, most, ("n", "s", "e", "w"))


def tape(cells: int, length: int) -> Made:
    """A head on a tape: < and > move it (within the tape), 0 and 1 write; the bit under the head."""
    alphabet = Alphabet.of("<", ">", "0", "1")
    x = Tokens(alphabet)
    head = x.number({"<": -1, ">": 1}, name="move").cumsum().named("head").one_hot(cells)
    bits = memory.write(head, x.is_in("1"), when=x.is_in("0", "1"), policy="last", name="tape").read(head)
    edges = [(str(c), str(c), ("0", "1")) for c in range(cells)]
    edges += [(str(c), str(c + 1), [">"]) for c in range(cells - 1)] + [
        (str(c + 1), str(c), ["<"]) for c in range(cells - 1)
    ]
    language = InputLanguage.of(alphabet, "0", edges, length, f"moves within {cells} cells, and bits")
    return emit(alphabet, (bits >= 1, "1"), otherwise="0"), language


def queue(most: int) -> Made:
    """Letters come in, `pop` takes the oldest out: the letter that came out, - where there was none."""
    letters = ("a", "b", "c")
    alphabet = Alphabet.of(*letters, "pop", "-")
    x = Tokens(alphabet)
    letter, pop = x.is_in(*letters), x.is_in("pop")
    pushed, pops = letter.cumsum().named("pushed"), pop.cumsum().named("pops")
    served = (pops - running_max((pops - pushed).relu(), when=pop)).named("served")
    stored = memory.write(pushed.one_hot(most + 1), x.one_hot(*letters), when=letter, name="stored")
    oldest, found = stored.read(served.one_hot(most + 1)), (pop & (served > served.shift(1))).named("found")
    rules = [(found & (oldest[i] >= 1), a) for i, a in enumerate(letters)]
    return emit(alphabet, *rules, otherwise="-"), InputLanguage.everything(alphabet, most, (*letters, "pop"))


def machine_of_states(table: dict[str, dict[str, str]]) -> Made:
    letters = tuple(table[next(iter(table))])
    alphabet = Alphabet.of(*letters, *table)
    state = automaton(table, Tokens(alphabet), start=next(iter(table)))
    return readout_one_hot(state, alphabet, tuple(table)), InputLanguage.everything(alphabet, None, letters)


def switch(most: int) -> Made:
    """`if` DIGIT `then` …: behind `x DIGIT`, `when DIGIT` says whether x has this value."""
    alphabet = Alphabet.of("x", "when", *DIGITS, "yes", "no", "-")
    x = Tokens(alphabet)
    digit = x.one_hot(*DIGITS, name="digit")
    value = latch(digit, when=x.is_in("x").shift(1)).named("value")
    asks = x.is_in("when").shift(1).named("asks")
    same = (value == digit).named("same")
    edges = [("word", "digit", ("x", "when")), ("digit", "word", DIGITS)]
    language = InputLanguage.of(alphabet, "word", edges, most, "x or when, each with a digit")
    return emit(alphabet, (asks & same, "yes"), (asks, "no"), otherwise="-"), language


DOOR = {
    "shut": {"push": "open", "pull": "shut", "lock": "locked"},
    "open": {"push": "open", "pull": "shut", "lock": "open"},
    "locked": {"push": "locked", "pull": "locked", "lock": "locked"},
}
LAMP = {
    "off": {"up": "low", "down": "off"},
    "low": {"up": "high", "down": "off"},
    "high": {"up": "high", "down": "low"},
}
KEYPAD = {
    "none": {"1": "one", "2": "none", "3": "none"},
    "one": {"1": "one", "2": "two", "3": "none"},
    "two": {"1": "one", "2": "none", "3": "unlocked"},
    "unlocked": dict.fromkeys("123", "unlocked"),
}
VENDING = {"0c": {"coin": "5c", "buy": "0c"}, "5c": {"coin": "10c", "buy": "0c"}, "10c": {"coin": "10c", "buy": "0c"}}


# What each must answer ------------------------------------------------------------------------------------------


def _calculates(deep: int, length: int) -> Machine:
    step = lambda stack, token: (*stack[:-2], stack[-2] + stack[-1]) if token == "+" else (*stack, int(token))
    return Machine((), step, lambda stack: str(stack[-1]))


def _truths() -> Machine:
    def step(stack: tuple, token: str) -> tuple:
        if token in "tf":
            return (*stack, token == "t") if len(stack) < 2 else stack
        if len(stack) < 2:
            return stack
        return (stack[0] and stack[1] if token == "&" else stack[0] or stack[1],)

    return Machine((), step, lambda stack: "-" if not stack else "yes" if stack[-1] else "no")


def _shows() -> Machine:
    def step(state: tuple, token: str) -> tuple:
        held = dict(state[0])
        if state[1] in NAMES and token in DIGITS:
            held[state[1]] = token
        return tuple(sorted(held.items())), token, held.get(token, "-") if state[1] == "show" else "-"

    return Machine(((), "", "-"), step, lambda state: state[2])


def _accumulates(most: int) -> Machine:
    def step(state: tuple, token: str) -> tuple:
        value, word = state
        if token in ("set", "add", "sub"):
            return value, token
        return {"set": int(token), "add": value + int(token), "sub": value - int(token)}[word], ""

    return Machine((0, ""), step, lambda state: str(state[0]))


def _walks(most: int) -> Machine:
    step = lambda s, t: (s[0] + (t == "n") - (t == "s"), s[1] + (t == "e") - (t == "w"))
    return Machine((0, 0), step, lambda s: str(abs(s[0]) + abs(s[1])))


def _tape(cells: int, length: int) -> Machine:
    def step(state: tuple, token: str) -> tuple:
        head, bits = state
        if token in "<>":
            return head + (1 if token == ">" else -1), bits
        return head, bits[:head] + (token,) + bits[head + 1 :]

    return Machine((0, ("0",) * cells), step, lambda state: state[1][state[0]])


def _queue(tokens: list[str]) -> str:
    waiting, out = [], "-"
    for token in tokens:
        out = "-"
        if token != "pop":
            waiting.append(token)
        elif waiting:
            out = waiting.pop(0)
    return out


def _switch(most: int) -> Machine:
    def step(state: tuple, token: str) -> tuple:
        value, word, _ = state
        if token in ("x", "when"):
            return value, token, "-"
        return (token, "", "-") if word == "x" else (value, "", "yes" if token == value else "no")

    return Machine(("", "", "-"), step, lambda state: state[2])


def _of(table: dict[str, dict[str, str]]) -> Machine:
    return Machine(next(iter(table)), lambda state, token: table[state][token], str)


FAMILY = Family(
    "interpreters",
    "small machines: calculators, registers, robots, queues",
    [
        *sizes(
            "calculator-{}-{}",
            "the number on top of a stack of at most {}, where + adds two, in up to {} tokens",
            calculator,
            _calculates,
            (2, 8),
            (3, 10),
        ),
        *sizes(
            "digit-stack-{}",
            "the digit on top of a stack of at most {}",
            pushes_and_pops,
            lambda deep: Machine((), lambda s, t: s[:-1] if t == "pop" else (*s, t), lambda s: s[-1] if s else "-"),
            2,
            4,
        ),
        Own(
            "truth-stack",
            "the truth on top of a stack of at most two, with and (&) and or (|); "
            "what finds no room or too few is lost",
            truth_stack,
            _truths(),
        ),
        Own("registers", "behind show NAME, the digit that was loaded into it last", registers, _shows()),
        *sizes(
            "accumulator-{}",
            "the number in the accumulator after set, add and sub: {} orders",
            accumulator,
            _accumulates,
            6,
        ),
        *sizes(
            "robot-{}",
            "where a robot on a line from 0 to {} is, which walls stop",
            robot,
            lambda most: Machine(0, lambda n, t: min(most, n + 1) if t == "right" else max(0, n - 1), str),
            2,
            4,
        ),
        *sizes("walker-{}", "how many steps from home a walker on a grid is, after up to {} steps", walker, _walks, 8),
        *sizes(
            "tape-{}", "the bit under the head of a tape of {} cells, in up to {} orders", tape, _tape, (2, 32), (4, 32)
        ),
        Own("queue-6", "the letter that pop takes out of a queue, in up to 6 orders", lambda: queue(6), _queue),
        *sizes("switch-{}", "whether the variable x has the value asked for, in up to {} tokens", switch, _switch, 64),
        Own("door", "whether a door is open, shut or locked", lambda: machine_of_states(DOOR), _of(DOOR)),
        Own("lamp", "how bright a lamp with an up and a down button is", lambda: machine_of_states(LAMP), _of(LAMP)),
        Own("keypad", "how much of the code 1 2 3 is typed", lambda: machine_of_states(KEYPAD), _of(KEYPAD)),
        Own(
            "vending",
            "how much money is in a machine that takes coins of 5 cents and holds two; buying takes all of it out",
            lambda: machine_of_states(VENDING),
            _of(VENDING),
        ),
    ],
)
