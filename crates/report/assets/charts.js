// How each kind of drawing looks: from the data of a page to an option of ECharts. Nothing here touches the page, so that the
// same drawings are made without a browser (still.js).
"use strict";
const fairground = (() => {
  // Okabe and Ito's colours: told apart by colour-blind readers, on white and on dark grey.
  const COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999999", "#B8A800"];
  const DASHES = ["solid", "dashed", "dotted", [8, 3, 2, 3], [2, 2], [12, 4]];
  // The room of a vertical axis with its name, and what a name may take below bars before they lie, px; more bars stand always.
  const BESIDE = 90, NAME_MAX = 130, LYING_MAX = 40;
  // A still picture: as wide as two thirds more than a column of a paper, so that its letters are read when it has that width.
  const STILL = { width: 540, height: 360, wide: 1080, size: 15, margin: 12 };

  // A number for people, its thousands set apart. Written out, as not every engine knows languages.
  function number(value) {
    if (value === null || value === undefined) return "not measured";
    const size = Math.abs(value);
    if (value !== 0 && (size < 0.001 || size >= 1e7)) return value.toExponential(2);
    const [whole, part] = value.toFixed(size < 10 ? 3 : size < 1000 ? 2 : 0).split(".");
    const rest = (part || "").replace(/0+$/, "");
    return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (rest ? `.${rest}` : "");
  }

  // For axes, where a power of ten has no room.
  function shortNumber(value) {
    const size = Math.abs(value);
    const [scale, letter] = size >= 1e18 ? [1e18, " E"] : size >= 1e15 ? [1e15, " P"] : size >= 1e12 ? [1e12, " T"] : size >= 1e9 ? [1e9, " G"] : size >= 1e6 ? [1e6, " M"] : [1, ""];
    return number(value / scale) + letter;
  }

  function duration(ns) {
    const size = Math.abs(ns);
    if (size < 1e3) return `${ns} ns`;
    if (size < 1e6) return `${(ns / 1e3).toFixed(3)} µs`;
    if (size < 1e9) return `${(ns / 1e6).toFixed(3)} ms`;
    return `${(ns / 1e9).toFixed(6)} s`;
  }

  // For axes: without zeros that say nothing.
  function roundDuration(ns) {
    if (ns === 0) return "0";
    return duration(Math.round(ns)).replace(/\.0+ /, " ").replace(/(\.\d*[1-9])0+ /, "$1 ");
  }

  function withUnit(axis, value) {
    return axis.unit === "ns" && value !== null ? duration(value) : `${number(value)} ${value === null ? "" : axis.unit}`.trim();
  }

  function escape(text) {
    return String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
  }

  function textStyle(theme) {
    return { color: theme.text, fontSize: theme.size, fontFamily: theme.font };
  }

  function textWidth(text, theme) {
    return echarts.format.getTextRect(text, `${theme.size}px ${theme.font}`).width;
  }

  // `room`: the pixels along the axis; a longer name is broken into lines.
  function axis(spec, view, room, extra) {
    const { theme, still } = view;
    // On paper, where nobody looks closer, the ends of the axis are named where they are round.
    const isRound = (value) => !still || Number(value.toPrecision(3)) === value;
    const short = (value) => (!isRound(value) ? "" : spec.unit === "ns" ? roundDuration(value) : shortNumber(value));
    return Object.assign(
      {
        type: spec.log ? "log" : "value",
        name: spec.unit && spec.unit !== "ns" ? `${spec.name} (${spec.unit})` : spec.name,
        nameLocation: "middle",
        nameGap: theme.size * 2,
        nameTextStyle: Object.assign(textStyle(theme), { width: room, overflow: "break" }),
        axisLabel: Object.assign({ formatter: short, hideOverlap: true }, textStyle(theme)),
        splitLine: { lineStyle: { color: theme.grid } },
        axisLine: { lineStyle: { color: theme.text } },
      },
      extra,
    );
  }

  // What all drawings have: the legend above, the place of the axes with all their letters, and in a still picture the title.
  // `entries`: names of the legend, or { name, icon }.
  function base(view, description, entries) {
    const { theme, still, width } = view, margin = still ? STILL.margin : 4;
    const option = {
      color: COLOURS,
      animation: false,
      textStyle: textStyle(theme),
      aria: { enabled: true, label: { description } },
      legend: { type: still ? "plain" : "scroll", data: entries, left: margin, right: margin, textStyle: textStyle(theme), pageTextStyle: textStyle(theme), pageIconColor: theme.text, pageIconInactiveColor: theme.grid, itemWidth: 28, itemGap: 12, inactiveColor: theme.grid },
      grid: { left: margin, right: margin + theme.size, bottom: margin, outerBoundsMode: "same", outerBoundsContain: "all" },
    };
    let top = 0;
    if (still) {
      const line = Math.round(theme.size * 1.4);
      option.title = {
        text: view.name, subtext: view.of, left: margin, top: margin, padding: 0, itemGap: 4,
        textStyle: Object.assign(textStyle(theme), { fontWeight: "normal", fontSize: theme.size + 3, width: width - 2 * margin, overflow: "break" }),
        subtextStyle: Object.assign(textStyle(theme), { width: width - 2 * margin, overflow: "break" }),
      };
      const large = Object.assign({}, theme, { size: theme.size + 3 });
      const lines = (text, of) => (text ? Math.ceil(textWidth(text, of) / (width - 2 * margin)) : 0);
      top = margin + lines(view.name, large) * (line + 4) + lines(view.of, theme) * line + 4;
    }
    option.legend.top = top;
    option.legend.show = entries.length > 1;
    option.grid.top = top + (option.legend.show ? legendRows(entries, view, margin) * (theme.size + 14) : 0) + theme.size;
    return option;
  }

  // Lines of a legend; one that scrolls has one.
  function legendRows(entries, { theme, still, width }, margin) {
    if (!still) return 1;
    let rows = 1, used = 0;
    for (const entry of entries) {
      const wide = textWidth(entry.name ?? entry, theme) + 28 + 5 + 12;
      if (used > 0 && used + wide > width - 2 * margin) {
        rows++;
        used = 0;
      }
      used += wide;
    }
    return rows;
  }

  // Whether bars lie: their names need more room than stands below each.
  function lies(shape, view) {
    const names = shape.categories, slot = (view.width - BESIDE) / Math.max(names.length, 1);
    const widest = Math.max(0, ...names.map((name) => textWidth(name, view.theme)));
    return shape.arrangement === "stacked" || (widest > slot && widest > NAME_MAX && names.length <= LYING_MAX);
  }

  // Bars that stand for one name, side by side.
  function abreast(shape) {
    return shape.arrangement === "beside" ? Math.max(shape.series.length, 1) : 1;
  }

  // The names of categories, put aslant where they do not fit beside each other.
  function categories(names, view) {
    const slot = (view.width - BESIDE) / Math.max(names.length, 1);
    const widest = Math.max(0, ...names.map((name) => textWidth(name, view.theme)));
    return Object.assign(
      { rotate: widest + 8 > slot ? 35 : 0, interval: slot >= view.theme.size * 1.3 ? 0 : "auto", width: 150, overflow: "truncate" },
      textStyle(view.theme),
    );
  }

  function bars(shape, view) {
    const { theme, still } = view, lying = lies(shape, view);
    // What the marks across the bars are; every bar has its own.
    const marks = shape.series.find((s) => s.marks)?.marks.name;
    const entries = shape.series.map((s) => s.name).concat(marks ? [{ name: marks, icon: "path://M0,0L28,0L28,4L0,4Z" }] : []);
    const option = base(view, view.name, entries);
    option.aria.decal = { show: shape.series.length > 1 };
    const drawn = shape.series.map((s) => ({ name: s.name, values: s.values, says: s.name }));
    drawn.push(...shape.series.filter((s) => s.marks).map((s) => ({ name: s.name, values: s.marks.values, says: `${s.name}, ${marks}`, isMark: true })));
    option.tooltip = {
      trigger: "axis",
      axisPointer: { type: "shadow" },
      formatter: (items) =>
        `<b>${escape(items[0].axisValue)}</b><br>` +
        items.map((i) => `${i.marker}${escape(drawn[i.seriesIndex].says)}: ${escape(withUnit(shape.axis, drawn[i.seriesIndex].values[i.dataIndex]))}`).join("<br>"),
    };
    const beside = lying
      ? Object.assign({ width: nameRoom(view), overflow: "break", interval: 0, lineHeight: lineHeight(theme) }, textStyle(theme))
      : categories(shape.categories, view);
    const names = { type: "category", data: shape.categories, inverse: lying, axisLabel: beside, axisTick: { show: false }, axisLine: { lineStyle: { color: theme.text } } };
    const numbers = axis(shape.axis, view, lying ? view.width * 0.5 : height(shape, view) * 0.6, lying && still ? { splitNumber: 4 } : {});
    Object.assign(option, lying ? { xAxis: numbers, yAxis: names } : { xAxis: names, yAxis: numbers });
    const bar = (s) => ({ name: s.name, data: s.values, barMaxWidth: lying ? 24 : 48, barGap: shape.arrangement === "exclusive" ? "-100%" : "8%", silent: still });
    option.series = drawn.map((s) =>
      s.isMark
        ? Object.assign(bar(s), { type: "pictorialBar", symbol: "rect", symbolPosition: "end", symbolSize: lying ? [3, "112%"] : ["112%", 3], symbolOffset: lying ? ["50%", 0] : [0, "-50%"], itemStyle: { color: theme.text, decal: { symbol: "none" } }, z: 5 })
        : Object.assign(bar(s), { type: "bar", stack: shape.arrangement === "stacked" ? "all" : undefined }),
    );
    // The legend has an entry for what there is a series of: one without points stands for all marks.
    if (marks) option.series.push({ type: "scatter", name: marks, data: [], itemStyle: { color: theme.text, opacity: 1 } });
    return option;
  }

  // Where bars lie, what their names may take before they are broken into lines, px.
  function nameRoom(view) {
    return Math.min(view.width * 0.42, 420);
  }

  // The height of a name's lane where bars lie: the bars, or the lines of the longest name. Lines end at words, and are not full.
  function lane(shape, view) {
    const widest = Math.max(0, ...shape.categories.map((name) => textWidth(name, view.theme)));
    const lines = widest > nameRoom(view) ? Math.ceil((widest * 1.2) / nameRoom(view)) : 1;
    return Math.max(32, 14 * abreast(shape) + 12, lines * lineHeight(view.theme) + 10);
  }

  function lineHeight(theme) {
    return Math.round(theme.size * 1.3);
  }

  function curves(shape, view) {
    // The legend shows the dashes.
    const option = base(view, view.name, shape.series.map((s) => ({ name: s.name, itemStyle: { opacity: 0 } })));
    option.tooltip = {
      trigger: "axis",
      formatter: (items) =>
        `${escape(shape.x.name)}: ${escape(withUnit(shape.x, items[0].value[0]))}<br>` +
        items.map((i) => `${i.marker}${escape(i.seriesName)}: ${escape(withUnit(shape.y, i.value[1]))}`).join("<br>"),
    };
    option.xAxis = axis(shape.x, view, view.width * 0.8, { min: "dataMin", max: "dataMax" });
    option.yAxis = axis(shape.y, view, height(shape, view) * 0.6, { scale: true });
    if (!view.still) option.dataZoom = [{ type: "inside", filterMode: "none" }];
    option.series = shape.series.map((s, i) => ({
      type: "line",
      name: s.name,
      data: s.points,
      step: shape.steps ? "end" : false,
      symbol: s.points.length < 2 ? "circle" : "none",
      sampling: shape.steps ? undefined : "lttb",
      lineStyle: { width: 2, type: DASHES[i % DASHES.length] },
      silent: view.still,
    }));
    return option;
  }

  // The option of a drawing; of a timeline, for paper. `view`: its `name`, the `width` of its place in pixels, `theme` (colours of
  // `text` and `grid`, the `font` and its `size`); `still`: for paper, with a title, `of` below it.
  function option(shape, view) {
    if (shape.kind === "bars") return bars(shape, view);
    if (shape.kind === "curves") return curves(shape, view);
    return fairground.timeline.still(shape, view);
  }

  // How high a drawing is, by what is in it. `view` as above.
  function height(shape, view) {
    const entries = shape.kind === "timeline" ? fairground.timeline.named(shape) : shape.series;
    const legend = (legendRows(entries, view, STILL.margin) - 1) * (view.theme.size + 14);
    const head = view.still ? legend + (view.of ? 2 : 0) * view.theme.size : 0;
    if (shape.kind === "timeline") return Math.min(130 + head + 34 * shape.lanes.length, 900);
    if (shape.kind === "bars" && lies(shape, view)) return 120 + head + lane(shape, view) * shape.categories.length;
    return head + (view.still ? STILL.height : 380);
  }

  // What `option` needs to draw for paper: on white, in letters that are still read when the picture is as wide as a column.
  function stillView(shape, name, of, font) {
    const theme = { text: "#1c1f23", grid: "#d8dce1", font, size: STILL.size };
    return { name, of, theme, still: true, width: shape.kind === "timeline" ? STILL.wide : STILL.width };
  }

  // `parts`: for timeline.js.
  const parts = { base, axis, textStyle, duration, BESIDE, STILL };
  return { option, height, stillView, duration, parts };
})();
