// How each kind of drawing looks: from the data of a page to an option of ECharts. Nothing here touches the page, so that the
// same drawings can be made without a browser.
"use strict";
const fairground = (() => {
  // Okabe and Ito's colours: told apart by colour-blind readers, on white and on dark grey.
  const COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999999", "#B8A800"];
  const DASHES = ["solid", "dashed", "dotted", [8, 3, 2, 3], [2, 2], [12, 4]];
  // Stretches of a timeline that are drawn at once; what is narrower than a pixel is drawn together.
  const PIXELS_MIN = 1;
  // Tasks that a timeline's legend names; pointing at a turn names any.
  const LEGEND_MAX = 8;

  function number(value) {
    if (value === null || value === undefined) return "not measured";
    const size = Math.abs(value);
    if (value !== 0 && (size < 0.001 || size >= 1e7)) return value.toExponential(2);
    return value.toLocaleString("en", { maximumFractionDigits: size < 10 ? 3 : size < 1000 ? 2 : 0 });
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
    return duration(Math.round(ns)).replace(/\.0+ /, " ").replace(/(\.\d*[1-9])0+ /, "$1 ");
  }

  function withUnit(axis, value) {
    return axis.unit === "ns" && value !== null ? duration(value) : `${number(value)} ${value === null ? "" : axis.unit}`.trim();
  }

  function escape(text) {
    return String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
  }

  function axis(spec, theme, extra) {
    const short = (value) => (spec.unit === "ns" ? roundDuration(value) : number(value));
    return Object.assign(
      {
        type: spec.log ? "log" : "value",
        name: spec.unit && spec.unit !== "ns" ? `${spec.name} (${spec.unit})` : spec.name,
        nameLocation: "middle",
        nameGap: 34,
        axisLabel: { formatter: short, color: theme.text, hideOverlap: true },
        nameTextStyle: { color: theme.text },
        splitLine: { lineStyle: { color: theme.grid } },
        axisLine: { lineStyle: { color: theme.text } },
      },
      extra,
    );
  }

  function base(theme) {
    return {
      color: COLOURS,
      animation: false,
      textStyle: { color: theme.text, fontFamily: theme.font },
      legend: { type: "scroll", top: 0, textStyle: { color: theme.text }, pageTextStyle: { color: theme.text } },
      grid: { left: 70, right: 24, top: 40, bottom: 60 },
    };
  }

  function bars(shape, theme, name) {
    const plain = shape.series.filter((s) => !s.reference);
    const option = base(theme);
    const long = shape.categories.some((c) => c.length > 12) && shape.categories.length > 4;
    option.aria = { enabled: true, label: { description: name }, decal: { show: plain.length > 1 } };
    option.tooltip = {
      trigger: "axis",
      axisPointer: { type: "shadow" },
      formatter: (items) =>
        `<b>${escape(items[0].axisValue)}</b><br>` +
        items.map((i) => `${i.marker}${escape(i.seriesName)}: ${escape(withUnit(shape.axis, shape.series[i.seriesIndex].values[i.dataIndex]))}`).join("<br>"),
    };
    option.xAxis = {
      type: "category",
      data: shape.categories,
      axisLabel: { color: theme.text, rotate: long ? 30 : 0, interval: shape.categories.length > 40 ? "auto" : 0 },
      axisLine: { lineStyle: { color: theme.text } },
    };
    option.yAxis = axis(shape.axis, theme, { nameGap: 50 });
    if (long) option.grid.bottom = 100;
    option.series = shape.series.map((s) =>
      s.reference
        ? { type: "scatter", name: s.name, data: s.values, symbol: "rect", symbolSize: [Math.max(14, 420 / shape.categories.length), 3], itemStyle: { color: theme.text }, z: 5 }
        : { type: "bar", name: s.name, data: s.values, barMaxWidth: 48, barGap: shape.exclusive ? "-100%" : "8%" },
    );
    return option;
  }

  function curves(shape, theme, name) {
    const option = base(theme);
    option.aria = { enabled: true, label: { description: name } };
    option.tooltip = {
      trigger: "axis",
      formatter: (items) =>
        `${escape(shape.x.name)}: ${escape(withUnit(shape.x, items[0].value[0]))}<br>` +
        items.map((i) => `${i.marker}${escape(i.seriesName)}: ${escape(withUnit(shape.y, i.value[1]))}`).join("<br>"),
    };
    option.xAxis = axis(shape.x, theme, { min: "dataMin", max: "dataMax" });
    option.yAxis = axis(shape.y, theme, { nameGap: 50, scale: true });
    option.dataZoom = [{ type: "inside", filterMode: "none" }];
    option.series = shape.series.map((s, i) => ({
      type: "line",
      name: s.name,
      data: s.points,
      step: shape.steps ? "end" : false,
      showSymbol: s.points.length < 2,
      sampling: shape.steps ? undefined : "lttb",
      lineStyle: { width: 2, type: DASHES[i % DASHES.length] },
    }));
    return option;
  }

  // The stretches of a lane: begins and lengths in ns since the timeline's begin, twice the task (plus one: several).
  function decodeLane(text) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    let at = 0;
    const next = () => {
      let value = 0, scale = 1, byte;
      do {
        byte = bytes[at++];
        value += (byte & 0x7f) * scale;
        scale *= 128;
      } while (byte & 0x80);
      return value;
    };
    const starts = [], ends = [], tasks = [];
    let now = 0;
    while (at < bytes.length) {
      now += next();
      starts.push(now);
      now += next();
      ends.push(now);
      tasks.push(next());
    }
    return { starts: Float64Array.from(starts), ends: Float64Array.from(ends), tasks: Uint32Array.from(tasks) };
  }

  function decode(shape) {
    if (!shape.decoded) shape.decoded = shape.lanes.map(decodeLane);
    return shape.decoded;
  }

  // What can be seen between two moments at this width: stretches that are a pixel wide as they are, narrower neighbours together.
  function visible(shape, from, to, width) {
    const pixel = ((to - from) / Math.max(width, 1)) * PIXELS_MIN, found = [];
    decode(shape).forEach((lane, cpu) => {
      let low = 0, high = lane.ends.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (lane.ends[middle] < from) low = middle + 1;
        else high = middle;
      }
      for (let i = low; i < lane.starts.length && lane.starts[i] <= to; ) {
        let j = i + 1;
        const start = lane.starts[i];
        while (j < lane.starts.length && lane.ends[j] - start < pixel && lane.starts[j] - lane.ends[j - 1] < pixel) j++;
        const several = j - i > 1 || (lane.tasks[i] & 1) === 1;
        found.push([cpu, start, lane.ends[j - 1], lane.tasks[i] >> 1, several ? 1 : 0, j - i]);
        i = j;
      }
    });
    return found;
  }

  function taskColour(task) {
    return COLOURS[task % COLOURS.length];
  }

  function timeline(shape, theme, name, window, width) {
    const length = shape.end_ns - shape.start_ns, lanes = shape.lanes.length;
    const from = window ? window[0] : 0, to = window ? window[1] : length;
    const option = base(theme);
    const cpu = (i) => `CPU ${i}`;
    const named = shape.tasks.slice(1, 1 + LEGEND_MAX);
    option.legend.selectedMode = false;
    option.legend.data = named;
    option.aria = { enabled: true, label: { description: `${name}. ${lanes} CPUs, ${duration(length)}.` } };
    option.grid = { left: 70, right: 24, top: 34, bottom: 70 };
    option.tooltip = {
      formatter: ({ value }) => {
        const what = value[4] ? `mostly <b>${escape(shape.tasks[value[3]])}</b>, several turns` : `<b>${escape(shape.tasks[value[3]])}</b>`;
        return `${what} on CPU ${value[0]}<br>from ${duration(shape.start_ns + value[1])}<br>for ${duration(value[2] - value[1])}`;
      },
    };
    option.xAxis = {
      type: "value", min: 0, max: length, name: "time", nameLocation: "middle", nameGap: 24,
      axisLabel: { formatter: roundDuration, color: theme.text, hideOverlap: true },
      splitLine: { lineStyle: { color: theme.grid } }, nameTextStyle: { color: theme.text },
    };
    option.yAxis = { type: "category", data: shape.lanes.map((_, i) => cpu(i)), inverse: true, axisLabel: { color: theme.text } };
    const zoom = { xAxisIndex: 0, startValue: from, endValue: to, filterMode: "none", minValueSpan: 1000 };
    option.dataZoom = [
      Object.assign({ type: "inside", zoomOnMouseWheel: true, moveOnMouseMove: true }, zoom),
      Object.assign({ type: "slider", height: 18, bottom: 8, labelFormatter: roundDuration, textStyle: { color: theme.text } }, zoom),
    ];
    // Series without data: for the legend alone.
    const legend = named.map((task, i) => ({ type: "custom", name: task, data: [], renderItem: () => undefined, itemStyle: { color: taskColour(i + 1) } }));
    option.series = [
      {
        type: "custom",
        name,
        encode: { x: [1, 2], y: 0 },
        clip: true,
        progressive: 0,
        data: visible(shape, from, to, width),
        renderItem: (params, api) => {
          const start = api.coord([api.value(1), api.value(0)]), end = api.coord([api.value(2), api.value(0)]);
          const height = Math.min(api.size([0, 1])[1] * 0.8, 40), frame = params.coordSys;
          const x = Math.max(start[0], frame.x), right = Math.min(end[0], frame.x + frame.width);
          if (right < frame.x || x > frame.x + frame.width) return undefined;
          return {
            type: "rect",
            shape: { x, y: start[1] - height / 2, width: Math.max(right - x, 0.5), height },
            style: { fill: taskColour(api.value(3)), opacity: api.value(4) ? 0.55 : 1 },
          };
        },
      },
      ...legend,
    ];
    return option;
  }

  // The option of a drawing. `theme`: colours of text and grid, and the font. `window`, of a timeline: the part that is shown, ns.
  function option(shape, theme, name, window, width) {
    if (shape.kind === "bars") return bars(shape, theme, name);
    if (shape.kind === "curves") return curves(shape, theme, name);
    return timeline(shape, theme, name, window, width);
  }

  function height(shape) {
    return shape.kind === "timeline" ? Math.min(130 + 34 * shape.lanes.length, 900) : 380;
  }

  return { option, visible, height, duration };
})();
