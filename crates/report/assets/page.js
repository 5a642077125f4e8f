// What a reader can do with the page: look closer, pick a run, copy a table.
"use strict";
(() => {
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const shown = [];

  function theme() {
    const style = getComputedStyle(document.body);
    return { text: style.color, grid: style.getPropertyValue("--line").trim(), font: style.fontFamily };
  }

  class Picture {
    constructor(chart) {
      this.chart = chart;
      this.place = document.getElementById(chart.id);
      this.picker = document.getElementById(`pick-${chart.id}`);
      this.window = null;
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
      return Math.max(this.place.clientWidth - 94, 100);
    }

    draw() {
      const shape = this.shape;
      this.place.style.height = `${fairground.height(shape)}px`;
      this.instance?.dispose();
      this.instance = echarts.init(this.place, null, { renderer: shape.kind === "timeline" ? "canvas" : "svg" });
      this.instance.setOption(fairground.option(shape, theme(), this.chart.title, this.window, this.width));
      if (shape.kind === "timeline") this.instance.on("datazoom", () => this.zoomed());
    }

    // What is seen now is looked up anew: more of it the closer one looks.
    zoomed() {
      const { startValue, endValue } = this.instance.getOption().dataZoom[0];
      this.window = [startValue, endValue];
      this.instance.setOption({ series: [{ data: fairground.visible(this.shape, startValue, endValue, this.width) }] });
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
  for (const chart of charts) shown.push(new Picture(chart));
  const redraw = () => shown.forEach((picture) => picture.draw());
  dark.addEventListener("change", redraw);
  let resized;
  window.addEventListener("resize", () => {
    clearTimeout(resized);
    resized = setTimeout(redraw, 150);
  });
  window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => (d.open = true)));
  window.fairgroundPictures = shown;
  document.documentElement.dataset.ready = "true";
})();
