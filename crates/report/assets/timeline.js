// What a timeline shows between two moments: from the columns of a page to shapes for ECharts, and to sums. Nothing here touches
// the page, so that the same is drawn without a browser (still.js).
"use strict";
fairground.timeline = (() => {
  const { base, axis, textStyle, duration, BESIDE, STILL } = fairground.parts;
  // `Doing` of timeline/mod.rs.
  const RUNNING = 0, WOKEN = 1, PREEMPTED = 2, SLEEPING = 3, BLOCKED = 4, AT_LOCK = 5, STOPPED = 6, KINDS = 7;
  const KIND_NAMES = ["running", "waiting, woken", "waiting, preempted", "asleep", "blocked", "at a lock", "stopped"];
  // Colours of what is not running, and how much of a row's height each takes: told apart without colours, too.
  const KIND_COLOURS = ["", "#E69F00", "#D55E00", "#8a929c", "#7b2d8e", "#c2479a", "#8a929c"];
  const KIND_HEIGHTS = [1, 0.5, 0.5, 0.08, 0.28, 0.5, 0.28];
  const UNKNOWN_COLOUR = "#9aa1aa";
  // What is put above each other where slices are narrower than a pixel, from below; the least height of the lowest, px.
  const STACKED = [RUNNING, WOKEN, PREEMPTED, AT_LOCK, BLOCKED], LITTLE = 2;
  // Slices that a still timeline has at most: with many CPUs it is coarser than a pixel.
  const STILL_SLICES_MAX = 30000;
  // Tasks that a still timeline's legend names.
  const LEGEND_MAX = 8;
  // Arrows are drawn where each has so much room, px; names stand in slices that have room for some letters.
  const ARROW_ROOM = 8, NAMES_MAX = 250, NAME_MIN = 34;
  // Ticks and marks are drawn where there are no more of them in a row.
  const INSTANTS_MAX = 400;
  // Slices that are looked at to say who delayed a task.
  const DELAYS_MAX = 300000;
  // Colours of tasks: hues, not those of waits, by lightness. The step between tasks of one name leads through all of them.
  const HUES = 10, HUE_FIRST = 100, HUE_STEP = 32, SHADES = [[0.62, 0.15], [0.76, 0.12], [0.5, 0.12]], STEP = 7;

  // OKLCH as sRGB.
  function oklch(light, chroma, degrees) {
    const a = chroma * Math.cos((degrees * Math.PI) / 180), b = chroma * Math.sin((degrees * Math.PI) / 180);
    const l = (light + 0.3963377774 * a + 0.2158037573 * b) ** 3;
    const m = (light - 0.1055613458 * a - 0.0638541728 * b) ** 3;
    const s = (light - 0.0894841775 * a - 1.291485548 * b) ** 3;
    const linear = [
      4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
      -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
      -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
    ];
    const byte = (value) => {
      const v = Math.min(Math.max(value, 0), 1), shown = v <= 0.0031308 ? 12.92 * v : 1.055 * v ** (1 / 2.4) - 0.055;
      return Math.round(shown * 255).toString(16).padStart(2, "0");
    };
    return `#${linear.map(byte).join("")}`;
  }
  const PALETTE = SHADES.flatMap(([light, chroma]) => Array.from({ length: HUES }, (_, i) => oklch(light, chroma, HUE_FIRST + HUE_STEP * i)));
  // Letters on the dark ones.
  const LETTERS = new Map(PALETTE.slice(2 * HUES).map((colour) => [colour, "#fff"]));

  // By the task's name, the number at its end, and by which of those with this name it is: the same in every page.
  function colours(shape) {
    if (shape.colours) return shape.colours;
    const seen = new Map();
    shape.colours = shape.names.map((name) => {
      const nth = seen.get(name) ?? 0, [, letters, digits] = /^(.*?)(\d{0,6})$/s.exec(name);
      seen.set(name, nth + 1);
      let hash = 0x811c9dc5;
      for (const c of letters) hash = Math.imul(hash ^ c.codePointAt(0), 0x01000193) >>> 0;
      return PALETTE[(((hash ^ (hash >>> 15)) >>> 0) % PALETTE.length + STEP * (nth + Number(digits))) % PALETTE.length];
    });
    shape.colours[0] = UNKNOWN_COLOUR;
    return shape.colours;
  }

  function taskName(shape, task) {
    return `${shape.names[task]} [${shape.pids[task]}]`;
  }

  // Reads numbers of seven bits a byte, the lowest first.
  function reader(bytes) {
    let at = 0;
    return () => {
      let byte = bytes[at++], value = byte & 0x7f, scale = 128;
      while (byte & 0x80) {
        byte = bytes[at++];
        value += (byte & 0x7f) * scale;
        scale *= 128;
      }
      return value;
    };
  }

  // The lanes: begins and ends in ns since the timeline's begin, twice the value (plus one: several), who made it so. `bytes`: the
  // columns without compression. `onlyCpus`: not those of tasks.
  function decode(shape, bytes, onlyCpus) {
    const gap = reader(bytes.gaps), length = reader(bytes.lengths), value = reader(bytes.values), by = reader(bytes.bys);
    const counts = onlyCpus ? shape.counts.slice(0, shape.cpus) : shape.counts;
    const lanes = counts.map((count) => {
      const lane = { starts: new Float64Array(count), ends: new Float64Array(count), values: new Uint32Array(count), bys: new Uint32Array(count) };
      let now = 0;
      for (let i = 0; i < count; i++) {
        lane.starts[i] = now += gap();
        lane.ends[i] = now += length();
        lane.values[i] = value();
        lane.bys[i] = by();
      }
      return lane;
    });
    const rising = (next, count) => {
      let now = 0;
      return Float64Array.from({ length: count }, () => (now += next()));
    };
    const tick = reader(bytes.ticks);
    shape.ticks = shape.tick_counts.map((count) => rising(tick, count));
    shape.marks = rising(reader(bytes.marks), shape.mark_tasks.length);
    shape.lanes = lanes.slice(0, shape.cpus);
    shape.states = lanes.slice(shape.cpus);
  }

  // The first of sorted numbers that is greater.
  function after(sorted, value) {
    let low = 0, high = sorted.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sorted[middle] <= value) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // Calls `wide(x, width, slice)` for the whole pixels of slices of a lane, and `column(x)` for each pixel within which slices begin and
  // end, with `parts` set: slices, and how much of the pixel each takes. Where none lies within the pixel, the largest part has it.
  const parts = { count: 0, slices: [], shares: [] };
  function pixels(lane, view, wide, column) {
    const { starts, ends } = lane, { from, to, perNs } = scale(view), left = view.grid.x, all = Math.floor(view.grid.width);
    let at = -1, hasShort = false;
    const flush = () => {
      if (hasShort) {
        column(left + at);
      } else if (parts.count > 0) {
        let filled = 0, most = 0;
        for (let i = 0; i < parts.count; i++) {
          filled += parts.shares[i];
          if (parts.shares[i] > parts.shares[most]) most = i;
        }
        if (filled > 0.5) wide(left + at, 1, parts.slices[most]);
      }
      parts.count = 0;
      hasShort = false;
    };
    const add = (pixel, slice, share, isShort) => {
      if (pixel !== at) flush();
      at = pixel;
      hasShort ||= isShort;
      parts.slices[parts.count] = slice;
      parts.shares[parts.count++] = share;
    };
    for (let i = after(ends, from); i < starts.length && starts[i] < to; i++) {
      const begin = Math.max((starts[i] - from) * perNs, 0), end = Math.min((ends[i] - from) * perNs, all), first = Math.floor(begin), last = Math.floor(end);
      if (first === last) {
        if (first < all) add(first, i, end - begin, true);
        continue;
      }
      const whole = begin > first ? first + 1 : first;
      if (begin > first) add(first, i, whole - begin, false);
      if (last > whole) {
        flush();
        wide(left + whole, last - whole, i);
      }
      if (end > last) add(last, i, end - last, false);
    }
    flush();
  }

  const kindOf = (value) => (value >> 1) & 7;
  const cpuOf = (value) => value >> 4;
  const laneOf = (row) => (row.kind === "cpu" ? row.shape.lanes[row.lane] : row.shape.states[row.lane]);

  // Rectangles by colour.
  class Fills {
    constructor() {
      this.byColour = new Map();
    }

    add(colour, x, y, width, height) {
      let list = this.byColour.get(colour);
      if (!list) this.byColour.set(colour, (list = []));
      list.push(x, y, width, height);
    }

    shapes() {
      return [...this.byColour].map(([fill, rects]) => ({ type: "fairgroundRects", shape: { rects }, style: { fill }, silent: true }));
    }
  }

  // Where things are: `at(ns)` in pixels.
  function scale({ grid, window: [from, to] }) {
    const perNs = grid.width / (to - from);
    return { from, to, perNs, at: (ns) => grid.x + Math.min(Math.max((ns - from) * perNs, -1), grid.width + 1) };
  }

  // A slice's place on the axis, at whole pixels.
  function span(at, start, end, grid) {
    const x = Math.max(Math.round(at(start)), grid.x), right = Math.min(Math.round(at(end)), grid.x + grid.width);
    return [x, Math.max(right - x, 1)];
  }

  function cpuRow(row, top, view, fills, names) {
    const { shape } = row, lane = laneOf(row), high = view.rowHeight - 4, colour = colours(shape);
    const wide = (x, width, i) => {
      const task = lane.values[i] >> 1;
      fills.add(colour[task], x, top + 2, width, high);
      if (width >= NAME_MIN && names.length < NAMES_MAX) names.push({ x, y: top, width, text: task ? shape.names[task] : "not known", fill: LETTERS.get(colour[task]) ?? "#000" });
    };
    // The colour of the task with the most time, as high as all tasks' share.
    const times = (shape.times ??= new Float64Array(shape.names.length));
    pixels(lane, view, wide, (x) => {
      let all = 0, most = 0, found = 0;
      for (let i = 0; i < parts.count; i++) {
        const task = lane.values[parts.slices[i]] >> 1, time = (times[task] += parts.shares[i]);
        all += parts.shares[i];
        if (time > most) [most, found] = [time, task];
      }
      for (let i = 0; i < parts.count; i++) times[lane.values[parts.slices[i]] >> 1] = 0;
      const height = Math.min(Math.max(high * all, LITTLE), high);
      fills.add(colour[found], x, top + 2 + high - height, 1, height);
    });
  }

  function taskRow(row, top, view, fills) {
    const { shape } = row, lane = laneOf(row), high = view.rowHeight - 4, own = colours(shape)[row.lane], times = new Float64Array(KINDS);
    const colour = (kind) => (kind === RUNNING ? own : KIND_COLOURS[kind]);
    const wide = (x, width, i) => {
      const kind = kindOf(lane.values[i]), height = Math.max(Math.round(high * KIND_HEIGHTS[kind]), 1);
      fills.add(colour(kind), x, Math.round(top + 2 + (high - height) / 2), width, height);
    };
    pixels(lane, view, wide, (x) => {
      times.fill(0);
      for (let i = 0; i < parts.count; i++) times[kindOf(lane.values[parts.slices[i]])] += parts.shares[i];
      const floor = top + 2 + high;
      let bottom = floor;
      for (const kind of STACKED) {
        if (times[kind] === 0) continue;
        const height = Math.min(Math.max(high * times[kind], bottom === floor ? LITTLE : 0), bottom - top - 2);
        if (height > 0.25) fills.add(colour(kind), x, bottom - height, 1, height);
        bottom -= height;
      }
    });
  }

  // Arrows of what made tasks wait for a CPU, between rows that are shown: from the one that woke or preempted. `only`: of one slice.
  function arrows(view, only) {
    const { at, from, to } = scale(view), found = { [WOKEN]: [], [PREEMPTED]: [] };
    const places = new Map(view.rows.map((row, i) => [row.kind === "task" ? `${row.run} ${row.lane}` : "", i]));
    let count = 0;
    for (const [i, row] of view.rows.entries()) {
      if (row.kind !== "task" || (only && only.row !== row)) continue;
      const lane = laneOf(row);
      for (let k = only ? only.index : after(lane.starts, from); k < lane.starts.length && lane.starts[k] < to; k++) {
        const kind = kindOf(lane.values[k]), by = places.get(`${row.run} ${lane.bys[k]}`);
        if ((kind === WOKEN || kind === PREEMPTED) && lane.bys[k] > 0 && by !== undefined && by !== i) {
          if (++count > view.grid.width / ARROW_ROOM && !only) return null;
          found[kind].push(at(lane.starts[k]), rowTop(view, by) + view.rowHeight / 2, rowTop(view, i) + view.rowHeight / 2);
        }
        if (only) break;
      }
    }
    return found;
  }

  function rowTop(view, index) {
    return view.grid.y + index * view.rowHeight;
  }

  function instants(row, top, view, fills) {
    const { at, from, to } = scale(view), colour = view.theme.text;
    if (row.kind === "cpu") {
      const ticks = row.shape.ticks[row.lane], first = after(ticks, from), end = after(ticks, to);
      if (end - first <= INSTANTS_MAX) for (let i = first; i < end; i++) fills.add(colour, Math.round(at(ticks[i])), top, 1, 4);
      return;
    }
    const marks = row.shape.marks, first = after(marks, from), end = after(marks, to);
    let shown = 0;
    for (let i = first; i < end && shown < INSTANTS_MAX; i++) {
      if (row.shape.mark_tasks[i] !== row.lane) continue;
      shown++;
      fills.add(colour, Math.round(at(marks[i])) - 1, top, 3, 6);
    }
  }

  // What is drawn of some rows: elements of ECharts. `view`: its `rows` ({ kind, shape, run, lane }), `grid` (px), `rowHeight`,
  // `window`, `theme`; `picked` (a slice) and `selection` (two moments), if there are any.
  function elements(view) {
    const { theme, grid } = view, fills = new Fills(), over = new Fills(), names = [];
    view.rows.forEach((row, i) => {
      const top = rowTop(view, i);
      if (row.kind === "cpu") cpuRow(row, top, view, fills, names);
      else taskRow(row, top, view, fills);
      instants(row, top, view, over);
      if (row.kind === "task") over.add(colours(row.shape)[row.lane], grid.x - 7, top + 3, 4, view.rowHeight - 6);
    });
    const found = fills.shapes();
    const all = arrows(view) ?? (view.picked ? arrows(view, view.picked) : null);
    for (const kind of all ? [WOKEN, PREEMPTED] : []) {
      const stroke = kind === WOKEN ? theme.text : KIND_COLOURS[PREEMPTED];
      if (all[kind].length) found.push({ type: "fairgroundArrows", shape: { arrows: all[kind] }, style: { stroke, fill: stroke, lineWidth: 1, lineDash: kind === WOKEN ? undefined : [3, 2] }, silent: true });
    }
    found.push(...over.shapes());
    for (const { x, y, width, text, fill } of names) {
      found.push({ type: "text", silent: true, style: { text, x: x + 3, y: y + view.rowHeight / 2, width: width - 6, overflow: "truncate", ellipsis: "…", verticalAlign: "middle", fill, fontSize: theme.size - 1, fontFamily: theme.font } });
    }
    const { at } = scale(view);
    if (view.selection) {
      const [x, width] = span(at, view.selection[0], view.selection[1], grid);
      found.push({ type: "rect", silent: true, shape: { x, y: grid.y, width, height: grid.height }, style: { fill: theme.text, opacity: 0.12 } });
    }
    const place = view.picked ? view.rows.indexOf(view.picked.row) : -1;
    if (place >= 0) {
      const lane = laneOf(view.picked.row), [x, width] = span(at, lane.starts[view.picked.index], lane.ends[view.picked.index], grid);
      found.push({ type: "rect", silent: true, shape: { x: x - 1, y: rowTop(view, place) + 0.5, width: width + 2, height: view.rowHeight - 1 }, style: { fill: "none", stroke: theme.text, lineWidth: 2 } });
    }
    return found;
  }

  // Many rectangles, or arrows (x, from, to), as one path.
  function registerShapes() {
    const register = (name, shape, buildPath) => echarts.graphic.registerShape(name, echarts.graphic.extendShape({ shape, buildPath }));
    register("fairgroundRects", { rects: [] }, (path, { rects }) => {
      for (let i = 0; i < rects.length; i += 4) path.rect(rects[i], rects[i + 1], rects[i + 2], rects[i + 3]);
    });
    register("fairgroundArrows", { arrows: [] }, (path, { arrows }) => {
      for (let i = 0; i < arrows.length; i += 3) {
        const x = arrows[i] + 0.5, to = arrows[i + 2], head = to > arrows[i + 1] ? -6 : 6;
        path.moveTo(x, arrows[i + 1]);
        path.lineTo(x, to);
        path.moveTo(x, to);
        path.lineTo(x - 3, to + head);
        path.lineTo(x + 3, to + head);
        path.closePath();
      }
    });
  }
  registerShapes();

  // The slice of a row at a moment; within `reach`, ns, the nearest.
  function sliceAt(row, ns, reach) {
    const lane = laneOf(row), i = after(lane.ends, ns);
    if (i < lane.starts.length && lane.starts[i] <= ns) return { row, index: i };
    const before = i > 0 ? ns - lane.ends[i - 1] : Infinity, behind = i < lane.starts.length ? lane.starts[i] - ns : Infinity;
    if (Math.min(before, behind) > reach) return null;
    return { row, index: before < behind ? i - 1 : i };
  }

  // Who ran on the CPU in whose queue a task waited, while it waited between two moments: pairs of task and ns, the most first.
  // `budget` counts down the slices that are looked at.
  function delays(shape, task, from, to, budget) {
    const lane = shape.states[task], times = new Map();
    for (let i = after(lane.ends, from); i < lane.starts.length && lane.starts[i] < to; i++) {
      const kind = kindOf(lane.values[i]), cpu = shape.lanes[cpuOf(lane.values[i])];
      if ((kind !== WOKEN && kind !== PREEMPTED) || lane.values[i] & 1 || !cpu) continue;
      const begin = Math.max(lane.starts[i], from), end = Math.min(lane.ends[i], to);
      for (let k = after(cpu.ends, begin); k < cpu.starts.length && cpu.starts[k] < end; k++) {
        if (--budget.left < 0) return [];
        const of = cpu.values[k] >> 1, ns = Math.min(cpu.ends[k], end) - Math.max(cpu.starts[k], begin);
        if (of !== task) times.set(of, (times.get(of) ?? 0) + ns);
      }
    }
    return [...times].sort((a, b) => b[1] - a[1]);
  }

  // What each task did between two moments: its time by kind, slices, and longest wait.
  function sums(shape, from, to) {
    const found = [];
    shape.states.forEach((lane, task) => {
      const sum = { task, times: new Float64Array(KINDS), slices: 0, longest: 0, merged: false };
      for (let i = after(lane.ends, from); i < lane.starts.length && lane.starts[i] < to; i++) {
        const kind = kindOf(lane.values[i]), ns = Math.min(lane.ends[i], to) - Math.max(lane.starts[i], from);
        sum.times[kind] += ns;
        sum.slices += kind === RUNNING ? 1 : 0;
        if (kind === WOKEN || kind === PREEMPTED) sum.longest = Math.max(sum.longest, ns);
        sum.merged ||= (lane.values[i] & 1) === 1;
      }
      if (task > 0 && sum.times.some((ns) => ns > 0)) found.push(sum);
    });
    return found;
  }

  // The share of time in which a CPU ran something between two moments.
  function busy(lane, from, to) {
    let ns = 0;
    for (let i = after(lane.ends, from); i < lane.starts.length && lane.starts[i] < to; i++) ns += Math.min(lane.ends[i], to) - Math.max(lane.starts[i], from);
    return ns / (to - from);
  }

  // The longest waits for a CPU of some rows: { row, index }, the longest first.
  function longestWaits(rows, most) {
    const found = [];
    let least = 0;
    for (const row of rows) {
      if (row.kind !== "task") continue;
      const lane = laneOf(row);
      for (let i = 0; i < lane.starts.length; i++) {
        const kind = kindOf(lane.values[i]), ns = lane.ends[i] - lane.starts[i];
        if ((kind !== WOKEN && kind !== PREEMPTED) || lane.values[i] & 1 || ns <= least) continue;
        found.push({ row, index: i, ns });
        if (found.length < 2 * most) continue;
        found.sort((a, b) => b.ns - a.ns).length = most;
        least = found[most - 1].ns;
      }
    }
    return found.sort((a, b) => b.ns - a.ns).slice(0, most);
  }

  // Moments for people, with as many decimals as tell apart what is a hundredth of the shown time apart.
  function moment(ns, shown) {
    const decimals = Math.min(Math.max(Math.ceil(11 - Math.log10(Math.max(shown, 1))), 0), 9);
    return `${(ns / 1e9).toFixed(decimals)} s`;
  }

  // Time that a task ran in all.
  function ranFor(shape, task) {
    const lane = shape.states[task];
    let ns = 0;
    for (let i = 0; i < lane.starts.length; i++) ns += kindOf(lane.values[i]) === RUNNING ? lane.ends[i] - lane.starts[i] : 0;
    return ns;
  }

  // A still timeline has the CPUs.
  function stillRows(shape) {
    return shape.lanes.map((_, lane) => ({ kind: "cpu", shape, run: 0, lane }));
  }

  // The tasks of a still timeline's legend; task 0 is what is not known.
  function named(shape) {
    const tasks = shape.names.slice(1, 1 + LEGEND_MAX).map((_, i) => ({ name: taskName(shape, i + 1), itemStyle: { color: colours(shape)[i + 1] } }));
    const more = shape.names.length - 1 - tasks.length;
    return more > 0 ? [...tasks, { name: `and ${more} more`, icon: "none" }] : tasks;
  }

  // The option of a timeline on paper.
  function still(shape, view) {
    const { theme, width } = view, length = shape.end_ns - shape.start_ns, rows = stillRows(shape), entries = named(shape);
    const option = base(view, `${view.name}. ${rows.length} CPUs, ${duration(length)}.`, entries);
    option.legend.show = true;
    option.xAxis = axis({ name: "time", unit: "ns", log: false }, view, width * 0.8, { min: 0, max: length });
    option.yAxis = { type: "category", data: rows.map((row) => `CPU ${row.lane}`), inverse: true, axisLabel: textStyle(theme), axisTick: { show: false }, axisLine: { lineStyle: { color: theme.text } } };
    // Coarser than a pixel where there are many CPUs, then drawn as wide as the place is.
    const most = STILL_SLICES_MAX / Math.max(rows.length, 1);
    const draw = ({ coordSys }) => {
      const fills = new Fills(), rowHeight = coordSys.height / Math.max(rows.length, 1), { x, y } = coordSys, wide = Math.max(coordSys.width / most, 1);
      const drawn = { theme, rows, rowHeight, window: [0, length], grid: { x, y, width: coordSys.width / wide } };
      rows.forEach((row, i) => cpuRow(row, y + i * rowHeight, drawn, fills, { length: NAMES_MAX }));
      fills.byColour.forEach((rects) => {
        for (let i = 0; i < rects.length; i += 4) {
          rects[i] = x + (rects[i] - x) * wide;
          rects[i + 2] *= wide;
        }
      });
      return { type: "group", children: fills.shapes() };
    };
    // Series without data: for the legend alone.
    const legend = entries.map((entry) => ({ type: "custom", name: entry.name, data: [], renderItem: () => undefined, itemStyle: entry.itemStyle }));
    option.series = [{ type: "custom", name: view.name, data: [[0, 0]], silent: true, renderItem: draw }, ...legend];
    return option;
  }

  return {
    KIND_NAMES, KIND_COLOURS, RUNNING, WOKEN, PREEMPTED, SLEEPING, BLOCKED, AT_LOCK, STOPPED, DELAYS_MAX,
    decode, elements, sliceAt, sums, busy, delays, longestWaits, moment, ranFor, still, named, colours, taskName, laneOf, kindOf, cpuOf, after,
  };
})();
