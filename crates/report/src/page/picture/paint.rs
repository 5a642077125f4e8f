//! Paints an SVG as PNG.

use std::sync::Arc;

use png::{BitDepth, ColorType, Encoder, PixelDimensions, Unit};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};

use super::Caption;

/// Pixels for each unit of the SVG, along a side: in a column of a paper these are 300 to an inch.
const SCALE: u32 = 2;
/// Units of an SVG in a metre: 96 in an inch of 25.4 mm.
const UNITS_PER_METRE: f64 = 96.0 / 0.0254;

/// A PNG with the caption's texts in it.
pub(super) fn png(
    svg: &str,
    fonts: &Arc<Database>,
    caption: &Caption<'_>,
) -> Result<Vec<u8>, String> {
    let options = Options {
        fontdb: Arc::clone(fonts),
        font_family: "Arimo".to_owned(),
        ..Options::default()
    };
    let tree = Tree::from_str(svg, &options).map_err(|e| e.to_string())?;
    let size = tree.size().to_int_size();
    let (width, height) = (size.width() * SCALE, size.height() * SCALE);
    let mut pixels = Pixmap::new(width, height).ok_or("it has no size")?;
    resvg::render(&tree, Transform::from_scale(SCALE as f32, SCALE as f32), &mut pixels.as_mut());
    encode(&pixels, caption).map_err(|e| e.to_string())
}

fn encode(pixels: &Pixmap, caption: &Caption<'_>) -> Result<Vec<u8>, png::EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, pixels.width(), pixels.height());
    encoder.set_color(ColorType::Rgb);
    encoder.set_depth(BitDepth::Eight);
    let per_metre = (UNITS_PER_METRE * f64::from(SCALE)).round() as u32;
    let dimensions = PixelDimensions { xppu: per_metre, yppu: per_metre, unit: Unit::Meter };
    encoder.set_pixel_dims(Some(dimensions));
    for (keyword, text) in [
        ("Title", caption.title),
        ("Description", &caption.description),
        ("Source", caption.command),
    ] {
        encoder.add_itxt_chunk(keyword.to_owned(), text.to_owned())?;
    }
    let mut writer = encoder.write_header()?;
    // The ground is white: no pixel lets anything through.
    let colours: Vec<u8> = pixels.data().chunks_exact(4).flat_map(|p| [p[0], p[1], p[2]]).collect();
    writer.write_image_data(&colours)?;
    writer.finish()?;
    Ok(bytes)
}
