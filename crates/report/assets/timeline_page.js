// What a reader can do with a timeline: look closer, search, select, jump to a wait.
"use strict";
const fairgroundTimelinePage = (() => {
  const t = fairground.timeline, duration = fairground.duration;
  // Heights, px: of a row, of all rows that are shown at once, of what lies below them.
  const ROW = 20, ROWS_HIGH = 560, BELOW = 62, ABOVE = 8;
  // The shortest time that is shown, ns; how much closer a step looks, and how far one moves.
  const SPAN_MIN = 200, CLOSER = 1.6, MOVE = 0.25;
  // Runs that are shown one above the other when the page opens; rows of the table of sums; waits to jump to.
  const TOGETHER_MAX = 2, SUMS_MAX = 15, WAITS_MAX = 100;
  // Below this width, px, names stand without pids.
  const NARROW = 500;
  // A press that moves less is a click; what is as near is pointed at, px.
  const CLICK = 4;
  const KEYS = [
    ["w, +", "look closer"], ["s, −", "look from farther"], ["a, ←", "earlier"], ["d, →", "later"], ["↑, ↓", "other rows"],
    ["n", "the longest wait for a CPU, then the next longest"], ["f", "look at the selection only"], ["0", "the whole run"],
    ["/", "search a task by name or pid"], ["Esc", "no selection"], ["?", "these keys"],
  ];
  const SAYS = {
    [t.RUNNING]: "runs", [t.WOKEN]: "waits for CPU", [t.PREEMPTED]: "waits for CPU", [t.SLEEPING]: "sleeps",
    [t.BLOCKED]: "is blocked (uninterruptible)", [t.AT_LOCK]: "waits at a lock", [t.STOPPED]: "is stopped",
  };

  function make(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  // The bytes of a column.
  async function unpacked(text) {
    const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  async function decode(shape) {
    const columns = await Promise.all(Object.entries(shape.columns).map(async ([name, text]) => [name, await unpacked(text)]));
    t.decode(shape, Object.fromEntries(columns), false);
    shape.columns = undefined;
  }

  class TimelinePicture {
    // `theme()`: the colours and letters of now; `width(place)`: how wide a drawing is.
    constructor(chart, { theme, width, isPaper }) {
      Object.assign(this, { chart, theme, isPaper, widthOf: width, place: document.getElementById(chart.id) });
      this.picker = document.getElementById(`pick-${chart.id}`);
      this.picked = 0;
      this.search = "";
      this.selection = this.pick = null;
      this.first = 0;
      this.build();
      this.ready = Promise.all(chart.drawings.map((drawing) => decode(drawing.shape))).then(() => this.begin(), (error) => this.fail(error));
    }

    get shape() {
      return this.chart.drawings[this.picked === "all" ? 0 : this.picked].shape;
    }

    get runs() {
      return this.picked === "all" ? this.chart.drawings.map((_, i) => i) : [this.picked];
    }

    get length() {
      return Math.max(...this.runs.map((run) => this.chart.drawings[run].shape).map((shape) => shape.end_ns - shape.start_ns), 1);
    }

    // The controls above the rows, what is said below them.
    build() {
      const button = (text, title, act) => {
        const made = make("button", { type: "button", title, "aria-label": title }, text);
        made.addEventListener("click", act);
        return made;
      };
      this.field = make("input", { type: "search", placeholder: "Search name or pid", "aria-label": "Search tasks by name or pid" });
      this.field.addEventListener("input", () => {
        this.search = this.field.value.trim().toLowerCase();
        this.waits = null;
        this.arrange();
      });
      this.keys = make("dl", { class: "keys", hidden: "" }, ...KEYS.flatMap(([key, what]) => [make("dt", {}, key), make("dd", {}, what)]));
      const tools = make("div", { class: "tools" },
        button("−", "Look from farther (s)", () => this.zoom(1 / CLOSER)), button("+", "Look closer (w)", () => this.zoom(CLOSER)),
        button("◀", "Earlier (a)", () => this.move(-MOVE)), button("▶", "Later (d)", () => this.move(MOVE)),
        button("All", "The whole run (0)", () => this.show(0, this.length)), button("Longest wait", "The longest wait for a CPU, then the next (n)", () => this.nextWait()),
        this.field, button("?", "Keys", () => this.toggleKeys()));
      this.canvas = make("div", { class: "canvas" });
      this.inner = make("div", { class: "inner" }, this.canvas);
      this.scroller = make("div", { class: "scroller" }, this.inner);
      this.details = make("p", { class: "details", "aria-live": "polite" });
      this.sums = make("div", { class: "sums" });
      this.place.before(tools, this.keys, legend());
      this.place.append(this.scroller);
      this.place.after(this.details, this.sums);
      this.place.setAttribute("role", "application");
      this.scroller.addEventListener("scroll", () => this.scrolled());
      // Its buttons and rows take the focus, too.
      document.getElementById(`section-${this.chart.id}`).addEventListener("keydown", (event) => this.key(event));
      this.canvas.addEventListener("pointerdown", (event) => this.down(event));
      this.canvas.addEventListener("pointermove", (event) => this.moved(event));
      this.canvas.addEventListener("pointerup", (event) => this.up(event));
      this.canvas.addEventListener("dblclick", () => this.closeUp());
      this.canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    }

    begin() {
      if (this.picker) {
        this.picker.append(make("option", { value: "all" }, "all, one above the other"));
        if (this.chart.drawings.length <= TOGETHER_MAX) this.picker.value = this.picked = "all";
        this.picker.addEventListener("change", () => {
          this.picked = this.picker.value === "all" ? "all" : Number(this.picker.value);
          this.waits = this.pick = null;
          this.arrange();
          this.sum();
        });
      }
      this.window = [0, this.length];
      this.say();
      this.draw();
      performance.mark("timeline");
    }

    fail(error) {
      this.details.textContent = `The timeline cannot be shown: ${error.message}. It needs a browser with DecompressionStream.`;
    }

    // All rows in order: the CPUs of each run, then the tasks, those of the same name in each run below each other.
    arrange() {
      const cpus = [], tasks = new Map(), several = this.runs.length > 1;
      for (const run of this.runs) {
        const { shape } = this.chart.drawings[run], of = several ? ` · ${this.chart.drawings[run].of}` : "";
        if (!this.search) shape.lanes.forEach((_, lane) => cpus.push({ kind: "cpu", shape, run, lane, label: `CPU ${lane}${of}` }));
        const seen = new Map();
        shape.ran ??= shape.names.map((_, task) => t.ranFor(shape, task));
        shape.names.forEach((name, lane) => {
          const nth = seen.get(name) ?? 0;
          seen.set(name, nth + 1);
          if (lane === 0 || shape.states[lane].starts.length === 0) return;
          if (this.search && !name.toLowerCase().includes(this.search) && !String(shape.pids[lane]).startsWith(this.search)) return;
          const key = `${nth} ${name}`, group = tasks.get(key) ?? { ran: 0, rows: [] };
          tasks.set(key, group);
          group.ran = Math.max(group.ran, shape.ran[lane]);
          group.rows.push({ kind: "task", shape, run, lane, label: `${this.isNarrow ? name : t.taskName(shape, lane)}${of}` });
        });
      }
      const busiest = [...tasks.values()].sort((a, b) => b.ran - a.ran);
      this.rows = [...cpus, ...busiest.flatMap((group) => group.rows)];
      this.fits = Math.max(Math.min(this.rows.length, Math.floor(ROWS_HIGH / ROW)), 1);
      this.first = Math.min(this.first, this.rows.length - this.fits);
      if (this.instance) this.layOut();
    }

    // Sizes, then everything.
    layOut() {
      const high = ABOVE + this.fits * ROW + BELOW, { canvas, scroller, inner } = this;
      canvas.style.height = scroller.style.height = `${high}px`;
      inner.style.height = `${high + (this.rows.length - this.fits) * ROW}px`;
      this.place.style.height = "auto";
      scroller.scrollTop = this.first * ROW;
      const width = this.isPaper() ? this.widthOf(this.place) : Math.max(canvas.clientWidth, 200);
      this.instance.resize({ width, height: high });
      const left = width < NARROW ? 116 : width < 1000 ? 170 : 230;
      this.grid = { x: left, y: ABOVE, width: width - left - 14, height: this.fits * ROW };
      this.instance.setOption(this.option(), { notMerge: true });
    }

    draw() {
      if (!this.window) return;
      this.instance?.dispose();
      this.instance = echarts.init(this.canvas, null, { renderer: "canvas", devicePixelRatio: this.isPaper() ? 3 : window.devicePixelRatio, width: 300, height: 200 });
      this.instance.on("datazoom", (event) => {
        const { startValue, endValue } = this.instance.getOption().dataZoom[0];
        if (!event.ours) this.show(startValue, endValue);
      });
      this.arrange();
    }

    get view() {
      const rows = this.rows.slice(this.first, this.first + this.fits);
      return { rows, grid: this.grid, rowHeight: ROW, window: this.window, theme: this.theme(), selection: this.selection, picked: this.pick };
    }

    get isNarrow() {
      return this.widthOf(this.place) < NARROW;
    }

    get span() {
      return this.window[1] - this.window[0];
    }

    option() {
      const theme = this.theme(), text = { color: theme.text, fontSize: theme.size, fontFamily: theme.font }, { x, y, width, height } = this.grid;
      const line = { lineStyle: { color: theme.text } };
      return {
        animation: false,
        aria: { enabled: true, label: { description: `${this.chart.title}: ${this.rows.length} rows, ${duration(this.length)}.` } },
        grid: { left: x, top: y, width, height, outerBoundsMode: "none" },
        xAxis: {
          type: "value", min: 0, max: this.length, splitNumber: Math.max(Math.floor(width / 110), 2), splitLine: { lineStyle: { color: theme.grid } }, axisLine: line,
          axisLabel: Object.assign({ hideOverlap: true, showMinLabel: true, showMaxLabel: true, alignMinLabel: "left", alignMaxLabel: "right", formatter: (ns) => t.moment(ns, this.span) }, text),
        },
        yAxis: { type: "category", inverse: true, data: this.labels(), axisTick: { show: false }, axisLine: line, axisLabel: Object.assign({ interval: 0, width: x - 16, overflow: "truncate", margin: 10 }, text) },
        dataZoom: [{ type: "slider", xAxisIndex: 0, startValue: this.window[0], endValue: this.window[1], filterMode: "none", minValueSpan: SPAN_MIN, height: 18, bottom: 8, brushSelect: false, showDetail: false, realtime: true, borderColor: theme.grid, textStyle: text }],
        series: [{ type: "custom", data: [[0, 0]], silent: true, clip: false, renderItem: () => ({ type: "group", $mergeChildren: false, children: t.elements(this.view) }) }],
      };
    }

    labels() {
      return this.rows.slice(this.first, this.first + this.fits).map((row) => row.label);
    }

    // Draws what is shown now, at once.
    refresh() {
      const { window } = this;
      this.instance.setOption({ yAxis: { data: this.labels() }, dataZoom: [{ startValue: window[0], endValue: window[1] }], series: [{ data: [[0, 0]] }] });
    }

    // The next time the browser draws.
    later() {
      this.asked ??= requestAnimationFrame(() => {
        this.asked = undefined;
        this.refresh();
      });
    }

    show(from, to) {
      const length = this.length, span = Math.min(Math.max(to - from, SPAN_MIN), length);
      const begin = Math.min(Math.max((from + to - span) / 2, 0), length - span);
      this.window = [begin, begin + span];
      this.later();
    }

    // Looks closer (more than 1) at a moment, the middle unless told.
    zoom(times, at = (this.window[0] + this.window[1]) / 2) {
      const [from, to] = this.window;
      this.show(at - (at - from) / times, at + (to - at) / times);
    }

    move(part) {
      const by = part * this.span, [from, to] = this.window, far = Math.min(Math.max(by, -from), this.length - to);
      this.show(from + far, to + far);
    }

    scrolled() {
      const first = Math.min(Math.round(this.scroller.scrollTop / ROW), this.rows.length - this.fits);
      if (first === this.first) return;
      this.first = first;
      this.later();
    }

    // Brings a row and a time into view.
    reveal(row, from, to) {
      const index = this.rows.indexOf(row);
      if (index >= 0 && (index < this.first || index >= this.first + this.fits)) {
        this.first = Math.min(Math.max(index - (this.fits >> 1), 0), this.rows.length - this.fits);
        this.scroller.scrollTop = this.first * ROW;
      }
      this.show(from, to);
    }

    nextWait() {
      if (!this.waits) {
        this.waits = t.longestWaits(this.rows, WAITS_MAX);
        this.nth = -1;
      }
      if (this.waits.length === 0) {
        this.details.textContent = "No task here waited for a CPU.";
        return;
      }
      this.nth = (this.nth + 1) % this.waits.length;
      const { row, index } = this.waits[this.nth], lane = t.laneOf(row), from = lane.starts[index], to = lane.ends[index], room = (to - from) * 0.4;
      this.pick = { row: this.rows.find((r) => r.kind === "task" && r.run === row.run && r.lane === row.lane) ?? row, index };
      this.reveal(this.pick.row, from - room, to + room);
      this.details.textContent = `Longest wait ${this.nth + 1} of ${this.waits.length}: ${this.told(this.pick)}`;
    }

    closeUp() {
      if (!this.pick) return;
      const lane = t.laneOf(this.pick.row), from = lane.starts[this.pick.index], to = lane.ends[this.pick.index], room = (to - from) * 0.2;
      this.show(from - room, to + room);
    }

    key(event) {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target === this.field || event.target === this.picker) return;
      const acts = {
        w: () => this.zoom(CLOSER), "+": () => this.zoom(CLOSER), "=": () => this.zoom(CLOSER), s: () => this.zoom(1 / CLOSER), "-": () => this.zoom(1 / CLOSER),
        a: () => this.move(-MOVE), ArrowLeft: () => this.move(-MOVE), d: () => this.move(MOVE), ArrowRight: () => this.move(MOVE),
        ArrowUp: () => (this.scroller.scrollTop -= ROW), ArrowDown: () => (this.scroller.scrollTop += ROW),
        n: () => this.nextWait(), f: () => this.selection && this.show(...this.selection), 0: () => this.show(0, this.length),
        "/": () => this.field.focus(), Escape: () => this.select(null), "?": () => this.toggleKeys(),
      };
      const act = acts[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    }

    toggleKeys() {
      this.keys.hidden = !this.keys.hidden;
    }

    // The moment and the row at a point; `null` beside the rows.
    at(event) {
      const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left - this.grid.x, y = event.clientY - box.top - this.grid.y;
      if (x < -CLICK || x > this.grid.width + CLICK || y < 0 || y >= this.grid.height) return null;
      const part = Math.min(Math.max(x / this.grid.width, 0), 1);
      return { ns: this.window[0] + part * this.span, row: this.rows[this.first + Math.floor(y / ROW)] };
    }

    down(event) {
      if (event.button !== 0) return;
      this.place.focus({ preventScroll: true });
      const at = this.at(event);
      if (!at) return;
      this.canvas.setPointerCapture(event.pointerId);
      this.pressed = { x: event.clientX, ns: at.ns, window: this.window, moves: event.shiftKey, far: false };
    }

    moved(event) {
      const at = this.at(event), { pressed } = this;
      if (!pressed) {
        if (at) this.pointAt(at);
        return;
      }
      pressed.far ||= Math.abs(event.clientX - pressed.x) > CLICK;
      if (!pressed.far) return;
      const ns = ((event.clientX - pressed.x) / this.grid.width) * this.span;
      if (pressed.moves) {
        const [from, to] = pressed.window, by = Math.min(Math.max(-ns, -from), this.length - to);
        this.show(from + by, to + by);
        return;
      }
      const [a, b] = [pressed.ns, pressed.ns + ns].sort((x, y) => x - y);
      this.selection = [Math.max(a, 0), Math.min(b, this.length)];
      this.later();
    }

    up(event) {
      const { pressed } = this, at = this.at(event);
      this.pressed = null;
      if (!pressed || pressed.moves) return;
      if (pressed.far) {
        this.select(this.selection);
      } else if (at) {
        this.pick = this.sliceAt(at);
        this.later();
        this.pointAt(at);
      }
    }

    // The page is scrolled by a wheel alone.
    wheel(event) {
      const at = this.at(event);
      if (!(event.ctrlKey || event.metaKey) || !at) return;
      event.preventDefault();
      this.zoom(CLOSER ** (-Math.sign(event.deltaY) * Math.min(Math.abs(event.deltaY) / 100, 2)), at.ns);
    }

    sliceAt({ ns, row }) {
      return t.sliceAt(row, ns, (CLICK * this.span) / this.grid.width);
    }

    pointAt(at) {
      const slice = this.sliceAt(at);
      this.details.textContent = slice ? this.told(slice) + this.toldMarks(at) : `${at.row.label}, ${t.moment(at.ns, this.span)}: ${at.row.kind === "cpu" ? "idle" : "not there, or not known"}`;
    }

    // A slice in a sentence.
    told({ row, index }) {
      const { shape } = row, lane = t.laneOf(row), from = lane.starts[index], to = lane.ends[index], value = lane.values[index];
      const when = `from ${t.moment(from, this.span / 100)} for ${duration(Math.round(to - from))}`;
      const several = value & 1 ? "several slices, mostly: " : "";
      const run = this.runs.length > 1 ? `${this.chart.drawings[row.run].of}: ` : "";
      if (row.kind === "cpu") {
        const task = value >> 1;
        return `${run}${several}${task ? t.taskName(shape, task) : "not known what runs"} on CPU ${row.lane} ${when}`;
      }
      const kind = t.kindOf(value), by = lane.bys[index], cpu = t.cpuOf(value);
      const where = kind === t.RUNNING ? ` on CPU ${cpu}` : "";
      const isWait = kind === t.WOKEN || kind === t.PREEMPTED;
      const why = kind === t.AT_LOCK && by ? ` ${shape.locks[by - 1]}` : isWait ? ` ${cpu}, ${kind === t.WOKEN ? "woken" : "preempted"} by ${by ? t.taskName(shape, by) : kind === t.WOKEN ? "an interrupt, or not known" : "the idle task"},` : "";
      const ran = isWait ? t.delays(shape, row.lane, from, to, { left: t.DELAYS_MAX }).slice(0, 3).map(([task, ns]) => `${task ? t.taskName(shape, task) : "not known"} ${duration(Math.round(ns))}`) : [];
      return `${run}${several}${t.taskName(shape, row.lane)} ${SAYS[kind]}${where}${why} ${when}${ran.length ? `; there ran meanwhile: ${ran.join(", ")}` : ""}`;
    }

    toldMarks({ ns, row }) {
      if (row.kind !== "task") return "";
      const { shape } = row, reach = (CLICK * this.span) / this.grid.width, said = [];
      for (let i = t.after(shape.marks, ns - reach); i < shape.marks.length && shape.marks[i] <= ns + reach && said.length < 5; i++) {
        if (shape.mark_tasks[i] === row.lane) said.push(`${shape.mark_texts[i]} at ${t.moment(shape.marks[i], this.span)}`);
      }
      return said.length ? `; reports ${said.join(", ")}` : "";
    }

    select(selection) {
      this.selection = selection;
      if (!selection) this.pick = null;
      this.sum();
      this.say();
      this.later();
    }

    say() {
      this.details.textContent = this.selection ? "f looks at the selection only, Esc ends it." : "Drag to select, Shift and drag to move, Ctrl and wheel to look closer; ? lists keys.";
    }

    // What happened in the selection.
    sum() {
      this.sums.replaceChildren();
      if (!this.selection) return;
      for (const run of this.runs) this.sums.append(this.sumOf(run, ...this.selection));
    }

    sumOf(run, from, to) {
      const { shape, of } = this.chart.drawings[run], found = t.sums(shape, from, to), time = (ns) => (ns ? duration(Math.round(ns)) : "0");
      const waited = (sum) => sum.times[t.WOKEN] + sum.times[t.PREEMPTED], weight = (sum) => sum.times[t.RUNNING] + waited(sum);
      const most = found.sort((a, b) => weight(b) - weight(a)).slice(0, SUMS_MAX), budget = { left: t.DELAYS_MAX };
      const cpus = shape.lanes.slice(0, SUMS_MAX).map((lane, cpu) => `CPU ${cpu} ${(100 * t.busy(lane, from, to)).toFixed(1)} %`);
      const head = ["task", "ran", "slices", "waited for a CPU", "longest wait", "delayed by", "at locks", "blocked", "asleep"];
      const rows = most.map((sum) => {
        const delays = waited(sum) ? t.delays(shape, sum.task, from, to, budget).slice(0, 2) : [];
        const by = budget.left < 0 ? "not counted: too many slices" : delays.map(([task, ns]) => `${task ? shape.names[task] : "not known"} ${time(ns)}`).join(", ");
        const { times } = sum;
        return [t.taskName(shape, sum.task), time(times[t.RUNNING]), String(sum.slices), time(waited(sum)), time(sum.longest), by, time(times[t.AT_LOCK]), time(times[t.BLOCKED]), time(times[t.SLEEPING])];
      });
      const number = (i) => (i === 0 || i === 5 ? {} : { class: "number" });
      const cells = (tag, row) => make("tr", {}, ...row.map((cell, i) => make(tag, number(i), cell)));
      const title = `${of && this.runs.length > 1 ? `${of}, ` : ""}${t.moment(from, to - from)} to ${t.moment(to, to - from)}, ${time(to - from)}`;
      const more = found.length > most.length ? ` ${found.length - most.length} more tasks ran or waited less.` : "";
      const merged = found.some((sum) => sum.merged) ? " Short slices were merged: times are near, not exact." : "";
      return make("div", {}, make("h3", {}, title), make("div", { class: "table" }, make("table", {}, make("thead", {}, cells("th", head)), make("tbody", {}, ...rows.map((row) => cells("td", row))))),
        make("p", { class: "hint" }, `Busy: ${cpus.join(", ")}${shape.lanes.length > SUMS_MAX ? ", …" : ""}.${more}${merged}`));
    }
  }

  // What shapes and colours of a task's row say.
  function legend() {
    const entry = (name, text) => make("span", {}, make("i", { class: `kind kind-${name}` }), text);
    return make("p", { class: "kinds", "aria-label": "Colours and shapes of a task's row" },
      entry("running", "running, in the task's colour"), entry("woken", "woken, waits for a CPU"), entry("preempted", "preempted, waits for a CPU"),
      entry("lock", "at a lock"), entry("blocked", "blocked (uninterruptible)"), entry("asleep", "asleep"), entry("unknown", "not known"));
  }

  return TimelinePicture;
})();
