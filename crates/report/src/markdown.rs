//! Markdown with pipe tables.

use crate::cell::printable;
use crate::{Align, Document, Table};

impl Table {
    /// The table in Markdown, under a heading of the third level.
    pub fn to_markdown(&self) -> String {
        let mut text = String::new();
        if !self.title.is_empty() {
            text += &format!("### {}\n\n", escape(&self.title));
        }
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        text += &line(self.columns.iter().map(|column| escape(&column.heading())).collect());
        let rules = self.columns.iter().map(|column| match column.align {
            Align::Left => "---".to_owned(),
            Align::Right => "---:".to_owned(),
        });
        text += &line(rules.collect());
        for row in &self.rows {
            let cells = self.columns.iter().zip(row);
            text += &line(cells.map(|(column, cell)| escape(&column.show(cell))).collect());
        }
        if !self.notes.is_empty() {
            text.push('\n');
        }
        for note in &self.notes {
            text += &format!("* {}\n", escape(note));
        }
        text
    }
}

impl Document {
    /// The document in Markdown.
    pub fn to_markdown(&self) -> String {
        let mut parts = Vec::new();
        if !self.verdicts.is_empty() {
            let lines = self.verdicts.iter().map(|v| format!("* **{}**\n", escape(&v.line())));
            parts.push(lines.collect());
        }
        if !self.title.is_empty() {
            parts.push(format!("## {}\n", escape(&self.title)));
        }
        if !self.summary.is_empty() {
            parts.push(self.summary.iter().map(|text| format!("* {}\n", escape(text))).collect());
        }
        parts.extend(self.tables.iter().map(Table::to_markdown));
        if !self.sections.is_empty() {
            let sections = self.sections.iter().map(|section| {
                let entries: Vec<String> = section
                    .entries
                    .iter()
                    .map(|entry| {
                        format!("{} {}", escape(&entry.name), escape(&entry.value.with_unit()))
                    })
                    .collect();
                format!("* {}: {}\n", escape(&section.name), entries.join(", "))
            });
            parts.push(sections.collect());
        }
        let notes: String = self.all_notes().map(|note| format!("* {}\n", escape(note))).collect();
        if !notes.is_empty() {
            parts.push(notes);
        }
        parts.join("\n")
    }
}

/// Keeps a text in its cell and from being markup.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in printable(text).chars() {
        if matches!(c, '|' | '*' | '_' | '`' | '<' | '[' | '\\') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}
