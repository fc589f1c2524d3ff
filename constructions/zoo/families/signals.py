"""Signals over time: edges, timers, debouncing, thresholds with memory, limits."""

from __future__ import annotations

from collections.abc import Callable

from compiler import (
    Alphabet,
    InputLanguage,
    Tokens,
    all_of,
    automaton,
    count,
    emit,
    latch,
    lti,
    position,
    readout_integer,
    running_max,
)
from constructions.zoo.entry import Family, Own, sizes
from constructions.zoo.families.counting import Made, numerals
from constructions.zoo.machine import Machine

BITS = ("0", "1")
LEVELS = tuple("01234")


def edge() -> Made:
    alphabet = Alphabet.of(*BITS, "rise", "fall", "-")
    x = Tokens(alphabet)
    one, zero = x.is_in("1"), x.is_in("0")
    rise, fall = (one & zero.shift(1)).named("rise"), (zero & one.shift(1)).named("fall")
    return emit(alphabet, (rise, "rise"), (fall, "fall"), otherwise="-"), InputLanguage.everything(alphabet, None, BITS)


def edges(most: int) -> Made:
    digits = numerals(most)
    alphabet = Alphabet.of("low", "high", *digits)
    x = Tokens(alphabet)
    rise = (x.is_in("high") & x.is_in("low").shift(1)).named("rise")
    return readout_integer(rise.cumsum().named("rises"), alphabet, digits), InputLanguage.everything(
        alphabet, 2 * most, ("low", "high")
    )


def timer(steps: int) -> Made:
    """On from a press until so many steps are over."""
    alphabet = Alphabet.of("press", "wait", "on", "off")
    pressed = Tokens(alphabet).is_in("press", name="pressed")
    recent = (lti(pressed, [1] * steps) >= 1).named("recent")
    return emit(alphabet, (recent, "on"), otherwise="off"), InputLanguage.everything(alphabet, None, ("press", "wait"))


def debounce(steps: int) -> Made:
    """The last bit that stood so many times in a row, 0 before there was one."""
    alphabet = Alphabet.of(*BITS)
    x = Tokens(alphabet)
    ones, zeros = (all_of(*(x.is_in(b).shift(k) for k in range(steps))) for b in ("1", "0"))
    steady = latch(ones.named("steady_one"), when=ones | zeros.named("steady_zero")).named("steady")
    return emit(alphabet, (steady >= 1, "1"), otherwise="0"), InputLanguage.everything(alphabet, None)


def thermostat(low: int, high: int) -> Made:
    """Heats from at most `low` on until at least `high`."""
    alphabet = Alphabet.of(*LEVELS, "heat", "rest")
    x = Tokens(alphabet)
    cold, warm = x.is_in(*LEVELS[: low + 1], name="cold"), x.is_in(*LEVELS[high:], name="warm")
    heats = latch(cold, when=cold | warm).named("heats")
    return emit(alphabet, (heats >= 1, "heat"), otherwise="rest"), InputLanguage.everything(alphabet, None, LEVELS)


def hold_largest() -> Made:
    """The largest level since the last reset: for each level, whether one as high stood since."""
    alphabet = Alphabet.of(*LEVELS, "reset")
    x = Tokens(alphabet)
    reached = [
        latch(x.is_in(*LEVELS[n:]), when=x.is_in(*LEVELS[n:], "reset")).named(f"reached_{n}") for n in range(1, 5)
    ]
    largest = (reached[0] + reached[1] + reached[2] + reached[3]).named("largest")
    return readout_integer(largest, alphabet, {d: int(d) for d in LEVELS}), InputLanguage.everything(
        alphabet, None, (*LEVELS, "reset")
    )


def limiter(window: int, most: int) -> Made:
    """Whether a request is within the limit: at most so many in the last few steps."""
    alphabet = Alphabet.of("request", "idle", "ok", "wait")
    x = Tokens(alphabet)
    recent = lti(x.is_in("request", name="request_now"), [1] * window).named("recent")
    late = ((recent > most) & x.is_in("request")).named("late")
    return emit(alphabet, (late, "wait"), otherwise="ok"), InputLanguage.everything(alphabet, None, ("request", "idle"))


def alarm(steps: int) -> Made:
    """Whether the level was 3 or more for so many steps in a row, at any time since the last reset."""
    alphabet = Alphabet.of(*LEVELS, "reset", "alarm", "calm")
    x = Tokens(alphabet)
    high = x.is_in("3", "4", name="high")
    sustained = all_of(*(high.shift(k) for k in range(steps))).named("sustained")
    rings = latch(sustained, when=sustained | x.is_in("reset")).named("rings")
    return emit(alphabet, (rings >= 1, "alarm"), otherwise="calm"), InputLanguage.everything(
        alphabet, None, (*LEVELS, "reset")
    )


def toggle(length: int) -> Made:
    """A lamp that each press switches."""
    alphabet = Alphabet.of("press", "wait", "on", "off")
    presses = Tokens(alphabet).is_in("press").cumsum().named("presses")
    return emit(alphabet, ((presses % 2 == 1).named("lit"), "on"), otherwise="off"), InputLanguage.everything(
        alphabet, length, ("press", "wait")
    )


def every(n: int, length: int) -> Made:
    """Marks every n-th position."""
    alphabet = Alphabet.of("x", "beat", "-")
    beat = (position() % n == 0).named("beat")
    silent = Tokens(alphabet).is_in("x")
    return emit(alphabet, (beat & silent, "beat"), otherwise="-"), InputLanguage.everything(alphabet, length, ("x",))


def since_event(most: int) -> Made:
    """Steps since the last event, at most so many."""
    digits = numerals(most)
    alphabet = Alphabet.of("event", "step", *digits)
    x = Tokens(alphabet)
    steps = count(x.is_in("step"), reset=x.is_in("event")).named("steps").clip(0, most)
    return readout_integer(steps, alphabet, digits), InputLanguage.everything(alphabet, 64, ("event", "step"))


def slope(width: int) -> Made:
    """Whether the sum of the last few levels is above that of the few before."""
    alphabet = Alphabet.of(*LEVELS, "up", "down", "level")
    number = Tokens(alphabet).number({d: int(d) for d in LEVELS}, name="level_now")
    change = lti(number, [1] * width + [-1] * width).named("change")
    return emit(alphabet, (change > 0, "up"), (change < 0, "down"), otherwise="level"), InputLanguage.everything(
        alphabet, None, LEVELS
    )


def both_seen() -> Made:
    """Whether a and b both stood since the last reset."""
    alphabet = Alphabet.of("a", "b", "c", "reset", "yes", "no")
    x = Tokens(alphabet)
    seen = [latch(x.is_in(a), when=x.is_in(a, "reset")).named(f"seen_{a}") for a in "ab"]
    return emit(alphabet, (((seen[0] + seen[1]) >= 2).named("both"), "yes"), otherwise="no"), InputLanguage.everything(
        alphabet, None, ("a", "b", "c", "reset")
    )


def order_kept() -> Made:
    """Whether no login came without a logout before it, nor a logout without a login."""
    alphabet = Alphabet.of("login", "logout", "work", "ok", "broken")
    moves = {
        "out": {"login": "in", "logout": "broken", "work": "out"},
        "in": {"login": "broken", "logout": "out", "work": "in"},
        "broken": dict.fromkeys(("login", "logout", "work"), "broken"),
    }
    state = automaton(moves, Tokens(alphabet), start="out")
    return emit(alphabet, (state[2], "broken"), otherwise="ok"), InputLanguage.everything(
        alphabet, None, ("login", "logout", "work")
    )


def drawdown() -> Made:
    """How far the level is below the highest one so far."""
    alphabet = Alphabet.of(*LEVELS)
    x = Tokens(alphabet)
    level = x.number({d: int(d) for d in LEVELS}, name="level_now")
    highest = running_max(level, when=x.is_in(*LEVELS)).named("highest")
    return readout_integer(
        (highest - level).named("below"), alphabet, {d: int(d) for d in LEVELS}
    ), InputLanguage.everything(alphabet, None)


# What each must answer ------------------------------------------------------------------------------------------


def _recent(window: int, answer: Callable[[tuple], str]) -> Machine:
    return Machine((), lambda state, token: (*state, token)[-window:], answer)


def _edge(pair: tuple) -> str:
    return {("0", "1"): "rise", ("1", "0"): "fall"}.get(pair, "-")


def _rises(most: int) -> Machine:
    step = lambda s, t: (s[0] + (s[1] == "low" and t == "high"), t)
    return Machine((0, ""), step, lambda s: str(s[0]))


def _steady(steps: int) -> Machine:
    def step(state: tuple, token: str) -> tuple:
        text = (state[0] + token)[-steps:]
        return text, token if text == token * steps else state[1]

    return Machine(("", "0"), step, lambda state: state[1])


def _thermostat(low: int, high: int) -> Machine:
    step = lambda s, t: "heat" if int(t) <= low else "rest" if int(t) >= high else s
    return Machine("rest", step, str)


def _alarm(steps: int) -> Machine:
    def step(state: tuple, token: str) -> tuple:
        if token == "reset":
            return 0, "calm"
        run = min(steps, state[0] + 1) if token in "34" else 0
        return run, "alarm" if run == steps else state[1]

    return Machine((0, "calm"), step, lambda state: state[1])


def _slope(width: int) -> Machine:
    def answer(recent: tuple) -> str:
        levels = [0] * (2 * width - len(recent)) + [int(t) for t in recent]
        change = sum(levels[width:]) - sum(levels[:width])
        return "up" if change > 0 else "down" if change < 0 else "level"

    return _recent(2 * width, answer)


def _both() -> Machine:
    step = lambda s, t: frozenset() if t == "reset" else s | {t} & {"a", "b"}
    return Machine(frozenset(), step, lambda s: "yes" if len(s) == 2 else "no")


def _kept() -> Machine:
    moves = {("out", "login"): "in", ("in", "logout"): "out"}
    step = lambda s, t: s if t == "work" else moves.get((s, t), "broken")
    return Machine("out", step, lambda s: "broken" if s == "broken" else "ok")


FAMILY = Family(
    "signals",
    "signals over time: edges, timers, thresholds with memory",
    [
        Own("edge", "whether the bit rose, fell or stayed", edge, _recent(2, _edge)),
        *sizes("rises-{}", "how often the signal rose from low to high, up to {}", edges, _rises, 6),
        *sizes(
            "timer-{}",
            "whether a press was among the last {} steps",
            timer,
            lambda n: _recent(n, lambda s: "on" if "press" in s else "off"),
            *(2, 5),
        ),
        *sizes(
            "steady-for-{}",
            "the last bit that stood {} times in a row, 0 before there was one",
            debounce,
            _steady,
            *(2, 3),
        ),
        *sizes(
            "thermostat-{}-{}",
            "whether it heats: from a level of at most {} on until one of at least {}",
            thermostat,
            _thermostat,
            *((0, 3), (1, 4)),
        ),
        Own(
            "largest-since-reset",
            "the largest level since the last reset",
            hold_largest,
            Machine(0, lambda s, t: 0 if t == "reset" else max(s, int(t)), str),
        ),
        *sizes(
            "limit-{}-steps-{}",
            "whether a request must wait: in the last {} steps, this one included, there were more than {}",
            limiter,
            lambda n, most: _recent(n, lambda s: "wait" if s[-1] == "request" and s.count("request") > most else "ok"),
            *((3, 1), (5, 2)),
        ),
        *sizes(
            "alarm-after-{}",
            "whether the level was ever 3 or more for {} steps in a row since the last reset",
            alarm,
            _alarm,
            *(2, 3),
        ),
        *sizes(
            "toggle-{}",
            "whether a lamp is on that each press switches, in up to {} steps",
            toggle,
            lambda n: Machine("off", lambda s, t: s if t == "wait" else {"on": "off", "off": "on"}[s], str),
            32,
        ),
        *sizes(
            "every-{}-of-{}",
            "whether the place is a multiple of {}, in texts of up to {}",
            every,
            lambda n, length: lambda tokens: "beat" if len(tokens) % n == 0 else "-",
            (3, 24),
        ),
        *sizes(
            "steps-since-event-{}",
            "how many steps ago the last event was (or the start), at most {}",
            since_event,
            lambda most: Machine(0, lambda s, t: 0 if t == "event" else min(most, s + 1), str),
            5,
        ),
        *sizes(
            "slope-over-{}",
            "whether the last {} levels together are above as many before them; 0 counts before the text",
            slope,
            _slope,
            *(1, 2),
        ),
        Own("both-since-reset", "whether a and b both stood since the last reset", both_seen, _both()),
        Own("sessions", "whether logins and logouts came in turn, a login first", order_kept, _kept()),
        Own(
            "below-highest",
            "how far the level is below the highest so far",
            drawdown,
            Machine((0, 0), lambda s, t: (max(s[0], int(t)), int(t)), lambda s: str(s[0] - s[1])),
        ),
    ],
)
