// Draws for paper, without a browser: what `picture/pen.rs` calls. It gives `unpacked(text)` and `measureText(text, size)`.
"use strict";
echarts.setPlatformAPI({
  measureText: (text, font) => ({ width: measureText(String(text), Number(/([\d.]+)px/.exec(font)?.[1] ?? 12)) }),
});
// Nothing is drawn later: there is no clock.
globalThis.setTimeout = () => 0;
globalThis.clearTimeout = () => undefined;
// Where ECharts makes up names, they are the same each time.
Math.random = () => 0.5;

// A drawing (JSON) as the text of an SVG.
function drawStill(json, name, of, font) {
  const shape = JSON.parse(json);
  if (shape.kind === "timeline") {
    const columns = Object.entries(shape.columns).map(([column, text]) => [column, new Uint8Array(unpacked(text))]);
    fairground.timeline.decode(shape, Object.fromEntries(columns), true);
  }
  const view = fairground.stillView(shape, name, of, font);
  const chart = echarts.init(null, null, { renderer: "svg", ssr: true, width: view.width, height: fairground.height(shape, view) });
  chart.setOption(Object.assign({ backgroundColor: "#ffffff" }, fairground.option(shape, view)));
  const svg = chart.renderToSVGString();
  chart.dispose();
  // What is for a mouse, paper does not have.
  return svg.replace(/<style[^]*<\/style>\s*/, "").replace(/ (class="zr\d+-cls-\d+"|pointer-events="\w+"|ecmeta_\w+="[^"]*")/g, "");
}
