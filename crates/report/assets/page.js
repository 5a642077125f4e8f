// What a reader can do with the page: look closer, pick a run, copy a table.
"use strict";
(() => {
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const shown = [];
  // The width of a printed chart, px: that of a sheet of A4 or letter size between its margins.
  const PAPER_WIDTH = 680;
  let paper = false;

  // Paper is white, whatever the screen is.
  function theme() {
    const style = getComputedStyle(document.body);
    if (paper) return { text: "#1c1f23", grid: "#d8dce1", font: style.fontFamily, size: 12 };
    return { text: style.color, grid: style.getPropertyValue("--line").trim(), font: style.fontFamily, size: 12 };
  }

  function width(place) {
    return paper ? PAPER_WIDTH : Math.max(place.clientWidth, 200);
  }

  class Picture {
    constructor(chart) {
      this.chart = chart;
      this.place = document.getElementById(chart.id);
      this.picker = document.getElementById(`pick-${chart.id}`);
      this.picked = 0;
      this.picker?.addEventListener("change", () => {
        this.picked = Number(this.picker.value);
        this.draw();
      });
      this.draw();
    }

    get shape() {
      return this.chart.drawings[this.picked].shape;
    }

    get width() {
      return width(this.place);
    }

    draw() {
      const shape = this.shape, view = { name: this.chart.title, theme: theme(), width: this.width };
      this.place.style.height = `${fairground.height(shape, view)}px`;
      this.instance?.dispose();
      const devicePixelRatio = paper ? 3 : window.devicePixelRatio;
      this.instance = echarts.init(this.place, null, { renderer: "svg", devicePixelRatio, width: this.width });
      this.instance.setOption(fairground.option(shape, view));
    }
  }

  function copy(button) {
    const rows = [...button.parentElement.querySelectorAll("tr")];
    const text = rows.map((row) => [...row.cells].map((cell) => cell.textContent.replace("✓ ", "")).join("\t")).join("\n");
    const done = () => {
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy as text"), 1500);
    };
    const byHand = () => {
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
      done();
    };
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, byHand);
    else byHand();
  }

  for (const button of document.querySelectorAll("button.copy")) button.addEventListener("click", () => copy(button));
  const surroundings = { theme, width, isPaper: () => paper };
  for (const chart of charts) {
    const isTimeline = chart.drawings[0].shape.kind === "timeline";
    shown.push(isTimeline ? new fairgroundTimelinePage(chart, surroundings) : new Picture(chart));
  }
  const ready = Promise.all(shown.map((picture) => picture.ready));
  const redraw = () => shown.forEach((picture) => picture.draw());
  dark.addEventListener("change", redraw);
  let resized;
  window.addEventListener("resize", () => {
    clearTimeout(resized);
    resized = setTimeout(redraw, 150);
  });
  window.addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((d) => (d.open = true));
    paper = true;
    redraw();
  });
  window.addEventListener("afterprint", () => {
    paper = false;
    redraw();
  });
  window.fairgroundPictures = shown;
  ready.then(() => (document.documentElement.dataset.ready = "true"));
})();
