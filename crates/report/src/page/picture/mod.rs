//! Each drawing of a page as a still picture for papers: an SVG and a PNG, on white.
//!
//! They look as in the page because the page's own `charts.js` says how: it runs, with ECharts, in a small JavaScript
//! engine inside the program ([QuickJS](https://quickjs-ng.github.io/quickjs/), module `pen`), and
//! [resvg](https://github.com/linebender/resvg) paints the SVG with a font that is inside as well. No browser, no
//! network, no font of the machine has a say: the same charts give the same bytes.

mod font;
mod paint;
mod pen;

use std::collections::BTreeSet;

use super::{Chart, Drawing, Page};

/// Letters of a picture's name: file systems take 255, and an end is to come.
const NAME_MAX: usize = 120;

/// One drawing of one chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The name of a file, without an end: the chart's, and what the drawing is of where a chart has several. Small
    /// letters, digits, `.`, `_` and `-`; no two pictures of a page have the same.
    pub name: String,
    /// The picture as SVG, with the chart's title, definition, samples and command in `title` and `desc`.
    pub svg: String,
    /// The same as PNG, with the same texts, twice as many pixels as the SVG has units.
    pub png: Vec<u8>,
}

/// Why there is no picture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the picture `{picture}` cannot be drawn: {why}")]
pub struct PictureError {
    /// Its name.
    pub picture: String,
    /// Message of the engine or of the painter.
    pub why: String,
}

/// Metadata of a picture.
struct Caption<'a> {
    title: &'a str,
    description: String,
    command: &'a str,
}

impl Page {
    /// Every drawing of every chart, in the order of the page.
    ///
    /// # Errors
    ///
    /// A drawing that takes more memory or time than one may (`pen`), or text that is no text for an SVG.
    pub fn pictures(&self) -> Result<Vec<Picture>, PictureError> {
        let pen = pen::Pen::new().map_err(|why| self.failed("", why))?;
        let font = font::database();
        let mut taken = BTreeSet::new();
        let mut pictures = Vec::new();
        for chart in &self.charts {
            for drawing in &chart.drawings {
                let name = name(chart, drawing, &mut taken);
                let caption = self.caption(chart, drawing);
                let svg = pen.draw(chart, drawing).map_err(|why| self.failed(&name, why))?;
                let svg = caption.add_to(&svg);
                let png =
                    paint::png(&svg, &font, &caption).map_err(|why| self.failed(&name, why))?;
                pictures.push(Picture { name, svg, png });
            }
        }
        Ok(pictures)
    }

    fn failed(&self, picture: &str, why: String) -> PictureError {
        PictureError { picture: picture.to_owned(), why }
    }

    fn caption<'a>(&'a self, chart: &'a Chart, drawing: &Drawing) -> Caption<'a> {
        let of = if drawing.of.is_empty() { String::new() } else { format!("{}. ", drawing.of) };
        let description = format!("{of}{} {}", chart.definition, chart.samples);
        Caption { title: &chart.title, description, command: &self.command }
    }
}

impl Caption<'_> {
    /// Puts the texts where readers of SVG look for them: first in the root.
    fn add_to(&self, svg: &str) -> String {
        let Some(end) = svg.find('>') else { return svg.to_owned() };
        let (root, rest) = svg.split_at(end + 1);
        let escape = super::html::escape;
        format!(
            "{root}\n<title>{}</title>\n<desc>{}\nMade by: {}</desc>{rest}\n",
            escape(self.title),
            escape(&self.description),
            escape(self.command)
        )
    }
}

/// The chart's name and, where it has several drawings, what this one is of; a number where that is taken.
fn name(chart: &Chart, drawing: &Drawing, taken: &mut BTreeSet<String>) -> String {
    let mut whole = plain(&chart.id);
    if chart.drawings.len() > 1 {
        whole = format!("{whole}-{}", plain(&drawing.of));
    }
    let whole: String = whole.chars().take(NAME_MAX).collect();
    let numbered = (2..).map(|number| format!("{whole}-{number}"));
    let free = std::iter::once(whole.clone()).chain(numbered).find(|name| !taken.contains(name));
    let name = free.unwrap_or(whole);
    taken.insert(name.clone());
    name
}

/// A text as a part of a file's name.
fn plain(text: &str) -> String {
    let mut name = String::new();
    for c in text.chars() {
        match c.to_ascii_lowercase() {
            c if c.is_ascii_alphanumeric() || c == '_' => name.push(c),
            '.' if !name.is_empty() => name.push('.'),
            _ if name.is_empty() || name.ends_with('-') => {}
            _ => name.push('-'),
        }
    }
    let name = name.trim_end_matches(['-', '.']);
    if name.is_empty() { "picture".to_owned() } else { name.to_owned() }
}
