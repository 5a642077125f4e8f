//! The font of still pictures: Arimo, as wide letter by letter as Arial, Helvetica and Liberation Sans, so that the
//! text of an SVG has its place whichever of them a reader has. The file in `assets/` has the letters of Latin, Greek
//! and Cyrillic scripts, arrows and mathematical signs; `arimo.LICENSE` is its licence.

use std::sync::Arc;

use resvg::usvg::fontdb::{Database, Source};
use skrifa::instance::{LocationRef, Size};
use skrifa::{FontRef, MetadataProvider};

const FONT: &[u8] = include_bytes!("../../../assets/arimo.ttf");

/// Fonts that an SVG names: the font, then those as wide as it.
pub(super) const FAMILIES: &str = "Arimo, 'Liberation Sans', Arial, Helvetica, sans-serif";

/// The font for the painter, and no other.
pub(super) fn database() -> Arc<Database> {
    let mut database = Database::new();
    database.load_font_source(Source::Binary(Arc::new(FONT)));
    database.set_sans_serif_family("Arimo");
    Arc::new(database)
}

/// How wide a text is, in pixels, in letters of a size in pixels. What the font does not have counts as wide as high.
pub(super) fn width(text: &str, size: f64) -> f64 {
    let Ok(font) = FontRef::new(FONT) else { return text.chars().count() as f64 * size };
    let letters = font.charmap();
    let widths = font.glyph_metrics(Size::new(size as f32), LocationRef::default());
    let wide = |c| letters.map(c).and_then(|letter| widths.advance_width(letter));
    text.chars().map(|c| wide(c).map_or(size, f64::from)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_have_the_widths_of_arial() {
        // Arial's are 1139 for `n`, 455 for `i`, 1706 for `m`, of 2048.
        for (letter, units) in [("n", 1139.0), ("i", 455.0), ("m", 1706.0)] {
            assert!(
                (width(letter, 2048.0) - units).abs() < 1.0,
                "{letter}: {}",
                width(letter, 2048.0)
            );
        }
        assert_eq!(width("国", 15.0), 15.0);
        assert!((width("µ←≤é", 10.0) - 10.0 * width("µ←≤é", 1.0)).abs() < 0.01);
    }
}
