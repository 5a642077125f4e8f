//! The page as HTML.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{Chart, Overview, Page};
use crate::cell::printable;
use crate::{Align, Document, Table, Verdict};

const STYLE: &str = include_str!("../../assets/page.css");
pub(super) const LIBRARY: &str = include_str!("../../assets/echarts.min.js");
pub(super) const CHARTS: &str = include_str!("../../assets/charts.js");
pub(super) const TIMELINE: &str = include_str!("../../assets/timeline.js");
/// Scripts of what a reader can do.
const BEHAVIOUR: [&str; 2] =
    [include_str!("../../assets/timeline_page.js"), include_str!("../../assets/page.js")];

impl Page {
    /// One file with everything in it.
    pub fn to_html(&self) -> String {
        let charts: Vec<Value> = self.charts.iter().map(Chart::to_json).collect();
        let title = escape(&self.document.title);
        let mut body = format!(
            "<header><h1>{title}</h1>{}{}<p class=\"command\">Made by <code>{}</code></p></header>\n",
            verdicts(&self.document),
            summary(&self.document.summary),
            escape(&self.command),
        );
        body += "<main>\n";
        body += &self.overview.as_ref().map(overview).unwrap_or_default();
        body += &self.charts.iter().map(|c| chart(c, &self.command)).collect::<String>();
        body += "<section id=\"numbers\"><h2>All numbers</h2>\n";
        body += &self.document.tables.iter().map(table).collect::<String>();
        body += "</section>\n";
        body += &made(&self.document);
        body += "</main>\n";
        let scripts = [LIBRARY, CHARTS, TIMELINE].into_iter().chain(BEHAVIOUR);
        let policy = policy(scripts.clone());
        let scripts: String = scripts.map(|text| format!("<script>{text}</script>\n")).collect();
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title} – fairground</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\
             <script type=\"application/json\" id=\"charts\">{}</script>\n\
             {scripts}</body>\n</html>\n",
            for_script(&Value::from(charts)),
        )
    }
}

/// The page's Content-Security-Policy: nothing is loaded, and only what the page itself has runs. ECharts sets styles
/// of single elements, which only `style-src-attr` allows.
fn policy<'a>(scripts: impl Iterator<Item = &'a str>) -> String {
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
    let scripts: Vec<String> = scripts.map(hash).collect();
    format!(
        "default-src 'none'; script-src {}; style-src {}; style-src-attr 'unsafe-inline'; \
         img-src data:; base-uri 'none'; form-action 'none'",
        scripts.join(" "),
        hash(STYLE)
    )
}

/// Verdicts: ends of runs, partial results, tasks that never ran.
fn verdicts(document: &Document) -> String {
    let item = |verdict: &Verdict| {
        let class = verdict.level.word();
        let details = verdict.details.join("\n");
        let details = match details.is_empty() {
            true => String::new(),
            false => format!("<pre>{}</pre>", escape_lines(&details)),
        };
        format!("<li class=\"{class}\">{}{details}</li>", escape(&verdict.line()))
    };
    match document.verdicts.as_slice() {
        [] => String::new(),
        verdicts => {
            let items: String = verdicts.iter().map(item).collect();
            format!("<ul class=\"verdicts\">{items}</ul>")
        }
    }
}

fn escape_lines(text: &str) -> String {
    text.lines().map(escape).collect::<Vec<_>>().join("\n")
}

fn summary(sentences: &[String]) -> String {
    if sentences.is_empty() {
        return String::new();
    }
    format!("<ul class=\"summary\">{}</ul>", items(sentences))
}

fn items<'a>(texts: impl IntoIterator<Item = &'a String>) -> String {
    texts.into_iter().map(|text| format!("<li>{}</li>", escape(text))).collect()
}

fn overview(overview: &Overview) -> String {
    let note = match overview.best.is_empty() {
        true => "",
        false => "<p class=\"hint\">✓ marks the best of each column.</p>",
    };
    format!(
        "<section id=\"overview\"><h2>{}</h2>\n{}{note}</section>\n",
        escape(&overview.table.title),
        rows(&overview.table, &overview.best)
    )
}

fn chart(chart: &Chart, command: &str) -> String {
    let id = escape(&chart.id);
    let picker = match chart.drawings.len() {
        0 | 1 => String::new(),
        _ => {
            let options: String = chart
                .drawings
                .iter()
                .enumerate()
                .map(|(i, d)| format!("<option value=\"{i}\">{}</option>", escape(&d.of)))
                .collect();
            format!(
                "<label class=\"picker\">Show <select id=\"pick-{id}\">{options}</select></label>"
            )
        }
    };
    let numbers = chart.table.as_ref().map_or_else(String::new, |t| {
        format!("<details><summary>The numbers</summary>{}</details>", rows(t, &[]))
    });
    format!(
        "<section class=\"chart\" id=\"section-{id}\" aria-labelledby=\"title-{id}\">\n\
         <h2 id=\"title-{id}\">{}</h2>{picker}\n\
         <div class=\"drawing\" id=\"{id}\" role=\"img\" tabindex=\"0\" aria-labelledby=\"title-{id}\" \
         aria-describedby=\"definition-{id}\"></div>\n\
         <p class=\"definition\" id=\"definition-{id}\">{}</p>\n\
         <p class=\"samples\">{} Made by <code>{}</code></p>\n{numbers}</section>\n",
        escape(&chart.title),
        escape(&chart.definition),
        escape(&chart.samples),
        escape(command),
    )
}

/// A table with its heading and notes, folded away.
fn table(table: &Table) -> String {
    format!(
        "<details><summary>{}</summary>{}</details>\n",
        escape(if table.title.is_empty() { &table.id } else { &table.title }),
        rows(table, &[])
    )
}

fn rows(table: &Table, best: &[(usize, usize)]) -> String {
    let class = |align| match align {
        Align::Left => "",
        Align::Right => " class=\"number\"",
    };
    let head: String = table
        .columns
        .iter()
        .map(|c| format!("<th scope=\"col\"{}>{}</th>", class(c.align), breakable(&c.heading())))
        .collect();
    let mut body = String::new();
    for (row, cells) in table.rows.iter().enumerate() {
        body += "<tr>";
        for (column, cell) in cells.iter().enumerate() {
            let spec = &table.columns[column];
            let shown = escape(&spec.show(cell));
            let is_best = best.contains(&(row, column));
            let mark = if is_best { "<span class=\"best\" title=\"best\">✓ </span>" } else { "" };
            body += &format!("<td{}>{mark}{shown}</td>", class(spec.align));
        }
        body += "</tr>\n";
    }
    let notes: String =
        table.notes.iter().map(|note| format!("<p class=\"hint\">{}</p>", escape(note))).collect();
    format!(
        "<div class=\"table\"><button class=\"copy\" type=\"button\">Copy as text</button>\
         <table id=\"table-{}\"><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table></div>{notes}",
        escape(&table.id)
    )
}

/// A heading that may go on in the next line behind the parts of a metric's name.
fn breakable(heading: &str) -> String {
    escape(heading).replace('_', "_<wbr>").replace('.', ".<wbr>")
}

/// How the result was made.
fn made(document: &Document) -> String {
    let sections: String = document
        .sections
        .iter()
        .map(|section| {
            let entries: Vec<String> = section
                .entries
                .iter()
                .map(|e| format!("{} <b>{}</b>", escape(&e.name), escape(&e.value.with_unit())))
                .collect();
            format!("<li><i>{}</i>: {}</li>", escape(&section.name), entries.join(", "))
        })
        .collect();
    let notes = items(document.all_notes());
    format!("<section id=\"made\"><h2>How it was made</h2><ul>{sections}{notes}</ul></section>\n")
}

/// Keeps a text from being markup.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            c => escaped.push(c),
        }
    }
    escaped
}

/// JSON that no text in it can end the script element of.
fn for_script(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{Arrangement, Axis, BarSeries, Bars, Drawing, Shape};
    use crate::{Cell, Column};

    #[test]
    fn texts_of_others_stay_texts() {
        let mut page = Page { command: "fairground <x>".into(), ..Page::default() };
        page.document = Document::new("</script><b>&");
        let bars = Bars {
            axis: Axis::linear("share", "%"),
            categories: vec!["</script><script>alert(1)".into()],
            series: vec![BarSeries::new("a", vec![None])],
            arrangement: Arrangement::Beside,
        };
        page.charts.push(Chart {
            id: "share".into(),
            title: "<i>".into(),
            definition: String::new(),
            samples: String::new(),
            drawings: vec![Drawing { of: String::new(), shape: Shape::Bars(bars) }],
            table: None,
        });
        let html = page.to_html();
        assert!(!html.contains("<script>alert") && !html.contains("<i></h2>"));
        assert!(html.contains("\\u003c/script>\\u003cscript>alert(1)"));
        assert!(html.contains("&lt;/script&gt;&lt;b&gt;&amp;"));
        assert_eq!(html.matches("</script>").count(), 6);
    }

    #[test]
    fn a_value_that_was_not_measured_is_said_so_and_the_best_is_marked() {
        let mut table = Table::new("t", "T", [Column::text("who"), Column::number("n")]);
        table.push([Cell::text("a"), Cell::NotMeasured]);
        table.push([Cell::text("b"), Cell::Int(3)]);
        let page =
            Page { overview: Some(Overview { table, best: vec![(1, 1)] }), ..Page::default() };
        let html = page.to_html();
        assert!(html.contains("<td class=\"number\">not measured</td>"));
        assert!(html.contains("✓ </span>3</td>"));
    }
}
