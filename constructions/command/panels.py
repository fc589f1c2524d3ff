"""The groups in which `construct --help` shows its commands."""

from __future__ import annotations

import typer

BUILD, INSPECT, ELSEWHERE, GROUND_TRUTH, PAPERS, KERNELS = (
    "Build",
    "Inspect and check",
    "Use elsewhere",
    "Ground truth",
    "Papers",
    "Kernels and runtimes",
)
PANELS = {
    INSPECT: (
        "list",
        "verify",
        "prove",
        "inspect",
        "show",
        "plot",
        "graph",
        "generate",
        "sensitivity",
    ),
    ELSEWHERE: ("export", "adopt", "graft", "compose", "install-mamba"),
    GROUND_TRUTH: ("trace", "report", "zoo", "disguise", "undisguise", "twin", "score", "score-table"),
    PAPERS: ("truths", "reproduce", "approximation-rate", "degree-gap", "generalization", "copy-decay", "costs")
    + ("gadgets", "estimation", "soft-selection"),
    KERNELS: ("conformance",),
}
"""Every other command builds something."""
_ORDER = (BUILD, *PANELS)


def group(app: typer.Typer) -> None:
    """Give every command of the application its panel, and put the panels into one order."""
    panel = {name: title for title, names in PANELS.items() for name in names}
    for entry in (*app.registered_commands, *app.registered_groups):
        name = entry.name or (entry.callback.__name__ if entry.callback else "")
        entry.rich_help_panel = panel.get(name, BUILD)
    app.registered_commands.sort(key=lambda entry: _ORDER.index(str(entry.rich_help_panel)))
