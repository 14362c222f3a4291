"""The chart of bench/compare: time over size, one panel per point, one line and one band of spread per library."""
import html
import math
import re
import statistics

# Distinguishable without colour vision (Okabe and Ito); the markers differ too.
STYLE = {"tutti": ("#0072B2", "circle"), "openmpi": ("#D55E00", "square"), "mpich": ("#009E73", "diamond")}
WIDTH, HEIGHT = 520, 340  # of a panel, with its margins
LEFT, RIGHT, TOP, BOTTOM = 64, 26, 34, 46
HEAD = 62
UNITS = {0: "1 µs", 1: "10 µs", 2: "100 µs", 3: "1 ms", 4: "10 ms", 5: "100 ms", 6: "1 s", -1: "0.1 µs", -2: "10 ns"}


def short_size(size):
    for suffix, factor in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if size >= factor:
            return f"{size / factor:g} {suffix}iB"
    return f"{size} B"


def text(x, y, words, size=12, anchor="start", weight="normal", fill="#222"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" font-weight="{weight}" '
            f'fill="{fill}">{html.escape(words)}</text>')


def marker(shape, x, y, colour):
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2" fill="{colour}"/>'
    turn = f' transform="rotate(45 {x:.1f} {y:.1f})"' if shape == "diamond" else ""
    return f'<rect x="{x - 2.8:.1f}" y="{y - 2.8:.1f}" width="5.6" height="5.6" fill="{colour}"{turn}/>'


class Axes:
    """Logarithmic on both sides: from bytes and microseconds to a place in the panel."""

    def __init__(self, sizes, times):
        self.sizes = (math.log2(min(sizes)), math.log2(max(sizes)))
        low, high = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))
        self.decades = range(low, max(high, low + 1) + 1)

    def x(self, size):
        first, last = self.sizes
        part = (math.log2(size) - first) / (last - first) if last > first else 0.5
        return LEFT + part * (WIDTH - LEFT - RIGHT)

    def y(self, time):
        first, last = self.decades[0], self.decades[-1]
        part = (math.log10(max(time, 10 ** first)) - first) / (last - first)
        return HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)

    def draw(self, sizes):
        parts = []
        for decade in self.decades:
            y = self.y(10 ** decade)
            parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
            parts.append(text(LEFT - 6, y + 4, UNITS.get(decade, f"1e{decade} µs"), 11, "end"))
        last = None
        for size in sizes:
            x = self.x(size)
            if last is not None and x - last < 56:
                continue
            last = x
            parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#eee"/>')
            parts.append(text(x, HEIGHT - BOTTOM + 16, short_size(size), 11, "middle"))
        parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, "bytes per rank", 11, "middle", fill="#555"))
        return parts


def line(axes, peer, rounds):
    """`rounds`: times by size."""
    colour, shape = STYLE[peer]
    sizes = sorted(rounds)
    top = [(axes.x(size), axes.y(max(rounds[size]))) for size in sizes]
    bottom = [(axes.x(size), axes.y(min(rounds[size]))) for size in sizes]
    middle = [(axes.x(size), axes.y(statistics.median(rounds[size]))) for size in sizes]
    points = {name: " ".join(f"{x:.1f},{y:.1f}" for x, y in place)
              for name, place in (("band", top + bottom[::-1]), ("line", middle))}
    return [f'<polygon points="{points["band"]}" fill="{colour}" fill-opacity="0.18"/>',
            f'<polyline points="{points["line"]}" fill="none" stroke="{colour}" stroke-width="1.8"/>'] + [
                marker(shape, x, y, colour) for x, y in middle]


def panel(found, point, axes):
    ranks, kind, memory = point
    parts = [text(LEFT, 22, f"{ranks} ranks, {kind}, {memory} memory", 13, weight="bold")]
    parts += axes.draw(found.options.sizes)
    drawn = [peer for peer in found.peers if found.rounds[point, peer]]
    for peer in reversed(drawn):  # the first on top
        parts += line(axes, peer, found.rounds[point, peer])
    absent = [peer for peer in found.peers if peer not in drawn]
    return parts, absent


def draw(found, names, over=""):
    """The whole SVG document. `over`: what the title says of the way between the ranks."""
    options = found.options
    times = [time for rounds in found.rounds.values() for cells in rounds.values() for time in cells if time > 0]
    axes = Axes(options.sizes, times or [1])
    columns = min(2, len(found.points))
    rows = math.ceil(len(found.points) / columns)
    width, height = columns * WIDTH, HEAD + rows * HEIGHT
    place = ", in place" if options.in_place else ""
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
             f'viewBox="0 0 {width} {height}" font-family="sans-serif">',
             f'<rect width="{width}" height="{height}" fill="white"/>',
             text(LEFT, 24, f"{options.collective}{place}{over}: time per call, buffers touched between calls", 15,
                  weight="bold")]
    x = LEFT
    for peer in found.peers:
        colour, shape = STYLE[peer]
        number = re.search(r"\d[\w.]*", found.versions.get(peer, ""))
        label = f"{names[peer]} {number[0]}" if number else f"{names[peer]} (not run)"
        parts += [marker(shape, x + 4, 43, colour), text(x + 14, 47, label, 12)]
        x += 34 + 7 * len(label)
    if columns > 1:
        parts.append(text(width - RIGHT, 24, f"median of {options.rounds} rounds; band: least to most", 12, "end",
                          fill="#555"))
    for index, point in enumerate(found.points):
        row, column = divmod(index, columns)
        body, absent = panel(found, point, axes)
        if absent:
            body.append(text(WIDTH - RIGHT, 22, "no " + ", ".join(names[peer] for peer in absent), 11, "end",
                             fill="#777"))
        parts.append(f'<g transform="translate({column * WIDTH} {HEAD + row * HEIGHT})">')
        parts += body + ["</g>"]
    return "\n".join(parts + ["</svg>"]) + "\n"
