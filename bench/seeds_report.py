# SPDX-License-Identifier: GPL-3.0-or-later
"""The figures of bench/seeds as Markdown tables and as an SVG bar chart. Rows are dictionaries as Seeds.row makes them."""
import html
import math

FORMS = {"stock": "stock rsyncd", "attr tree": "attr tree", "snapshot": "attr snapshot"}
WHOLE = "the whole tree"

# The chart, in pixels.
WIDTH, LEFT, RIGHT, BAR, STEP, HEAD = 860, 150, 190, 13, 18, 30
LOWEST = 0.5  # operations at the left end of the logarithmic scale; a single one has to be seen
STYLE = """
svg { font: 12px system-ui, sans-serif; }
.ground { fill: #ffffff; stroke: #d0d7de; } text { fill: #1f2328; } .job { font-weight: 600; } .small { fill: #59636e; }
.grid { stroke: #d8dee4; }
.stock { fill: #d9822b; } .attr-tree { fill: #2f7ed8; } .snapshot { fill: #159a8c; } .other { fill: #9aa4af; }
@media (prefers-color-scheme: dark) {
.ground { fill: #0d1117; stroke: #30363d; } text { fill: #e6edf3; } .small { fill: #9198a1; } .grid { stroke: #2a313a; }
.stock { fill: #e39a4f; } .attr-tree { fill: #58a6ff; } .snapshot { fill: #3fc1b0; } .other { fill: #6e7781; }
}
"""


def amount(size):
    """Bytes, in two digits or more."""
    for unit, factor, least in ("GB", 1e9, 1e10), ("MB", 1e6, 1e6), ("KB", 1e3, 1e3):
        if size >= least:
            return f"{size / factor:,.{1 if size < 100 * factor else 0}f} {unit}"
    return f"{size} bytes"


def reads(row):
    if not row["operations"]:
        return "0"
    return f"{row['operations']:,} · {amount(row['bytes'])} · {amount(row['bytes'] / row['operations'])}"


def jobs(rows):
    """{job: {form: row}} in the order of the run, but for what is only a scale: that comes last."""
    result = {}
    for row in sorted(rows, key=lambda row: (row["job"] == WHOLE, row["form"] not in FORMS)):
        result.setdefault(row["job"], {})[row["form"]] = row
    return result


def line(*cells):
    return "| " + " | ".join(cells) + " |\n"


def head(*cells):
    return line(*cells) + "|" + "---|" * len(cells) + "\n"


def table(rows):
    found = jobs(rows)
    whole = found.pop(WHOLE)
    text = head("reads · bytes · bytes each", *FORMS.values(), "`cat` of what is sent")
    for job, forms in found.items():
        floor = next((row for form, row in forms.items() if form not in FORMS), None)
        text += line(job, *(reads(forms[form]) for form in FORMS), reads(floor) if floor else "")
        text += line("the same: CPU of the server", *(f"{forms[form]['cpu']:.2f} s" for form in FORMS), "")
    return text + "\n" + head(WHOLE, *whole) + line("reads · bytes · bytes each", *map(reads, whole.values()))


def bar(form, row, y, scale):
    """One bar with its name on the left and its figures at its end."""
    length = scale(row["operations"]) - LEFT if row["operations"] else 0
    kind = form.replace(" ", "-") if form in FORMS else "other"
    figures = f"{row['operations']:,} reads, {amount(row['bytes'])}" if row["operations"] else "0 reads"
    return (f'<text class="small" x="{LEFT - 8}" y="{y + 10}" text-anchor="end">{html.escape(FORMS.get(form, form))}</text>\n'
            f'<rect class="{kind}" x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR}" rx="2"/>\n'
            f'<text x="{LEFT + length + 6:.1f}" y="{y + 10}">{figures}</text>\n')


def grid(highest, bottom, scale):
    text = ""
    for power in range(int(math.log10(highest)) + 1):
        x = scale(10 ** power)
        text += (f'<line class="grid" x1="{x:.1f}" y1="44" x2="{x:.1f}" y2="{bottom}"/>\n'
                 f'<text class="small" x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{10 ** power:,}</text>\n')
    return text


def plot(rows):
    highest = max(row["operations"] for row in rows)
    unit = (WIDTH - LEFT - RIGHT) / math.log10(highest / LOWEST)

    def scale(operations):
        return LEFT + unit * math.log10(operations / LOWEST)

    bars, y = "", 44
    for job, forms in jobs(rows).items():
        bars += f'<text class="job" x="{LEFT}" y="{y + 20}">{html.escape(job)}</text>\n'
        y += HEAD
        for form, row in forms.items():
            bars += bar(form, row, y, scale)
            y += STEP
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 40}" width="{WIDTH}" height="{y + 40}">\n'
            f'<style>{STYLE}</style>\n<rect class="ground" x="0.5" y="0.5" width="{WIDTH - 1}" height="{y + 39}" rx="6"/>\n'
            f'<text class="job" x="16" y="28">Read operations of the sending side\'s disk, cold (logarithmic scale)</text>\n'
            f'{grid(highest, y + 6, scale)}{bars}</svg>\n')
