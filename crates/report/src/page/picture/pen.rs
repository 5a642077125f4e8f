//! Draws: the page's scripts, run in QuickJS.

use std::cell::Cell;
use std::io::Read as _;
use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::DeflateDecoder;
use rquickjs::{ArrayBuffer, CatchResultExt, Context, Ctx, Function, Runtime};

use super::font;
use crate::page::html::{CHARTS, LIBRARY, TIMELINE};
use crate::page::{Chart, Drawing};

const STILL: &str = include_str!("../../../assets/still.js");

/// Memory that the scripts may take, bytes: a timeline of 1,500,000 slices takes a twentieth.
const MEMORY_MAX: usize = 2 << 30;
/// A timeline's column, bytes: five for each of the most slices.
const COLUMN_BYTES_MAX: u64 = 64 << 20;
/// Their stack, bytes: less than a thread of the tests has.
const STACK_MAX: usize = 1 << 20;
/// How often the engine may ask whether to go on, for one drawing; it does after ten thousand jumps. A timeline of
/// 1,500,000 slices takes less than a tenth (a test below).
const ASKED_MAX: u64 = 100_000;

/// An engine with the scripts in it.
pub(super) struct Pen {
    context: Context,
    asked: Rc<Cell<u64>>,
}

impl Pen {
    /// Reads the scripts. The error is for people.
    pub(super) fn new() -> Result<Self, String> {
        let runtime = Runtime::new().map_err(|e| e.to_string())?;
        runtime.set_memory_limit(MEMORY_MAX);
        runtime.set_max_stack_size(STACK_MAX);
        let asked = Rc::new(Cell::new(0));
        let count = Rc::clone(&asked);
        runtime.set_interrupt_handler(Some(Box::new(move || {
            count.set(count.get() + 1);
            count.get() > ASKED_MAX
        })));
        let context = Context::full(&runtime).map_err(|e| e.to_string())?;
        context.with(|ctx| {
            let read = || -> rquickjs::Result<()> {
                let globals = ctx.globals();
                globals.set("measureText", Function::new(ctx.clone(), measure)?)?;
                globals.set("unpacked", Function::new(ctx.clone(), unpacked)?)?;
                for script in [LIBRARY, CHARTS, TIMELINE, STILL] {
                    ctx.eval::<(), _>(script)?;
                }
                Ok(())
            };
            with_exception(&ctx, read())
        })?;
        Ok(Self { context, asked })
    }

    /// A drawing as SVG.
    pub(super) fn draw(&self, chart: &Chart, drawing: &Drawing) -> Result<String, String> {
        self.asked.set(0);
        let shape = drawing.shape.to_json().to_string();
        self.context.with(|ctx| {
            let draw = || -> rquickjs::Result<String> {
                let draw: Function<'_> = ctx.globals().get("drawStill")?;
                draw.call((shape, &chart.title, &drawing.of, font::FAMILIES))
            };
            with_exception(&ctx, draw())
        })
    }
}

fn measure(text: String, size: f64) -> f64 {
    font::width(&text, size)
}

/// The bytes of a timeline's column. Nothing where it is none.
fn unpacked(ctx: Ctx<'_>, text: String) -> rquickjs::Result<ArrayBuffer<'_>> {
    let packed = STANDARD.decode(text).unwrap_or_default();
    let mut bytes = Vec::new();
    // What was read before an error is what there is.
    let _ = DeflateDecoder::new(packed.as_slice()).take(COLUMN_BYTES_MAX).read_to_end(&mut bytes);
    ArrayBuffer::new(ctx, bytes)
}

/// The result, with a script's exception in words.
fn with_exception<T>(ctx: &Ctx<'_>, result: rquickjs::Result<T>) -> Result<T, String> {
    result.catch(ctx).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{SLICES_MAX, Shape, Slice, TaskName, Timeline};

    #[test]
    fn the_largest_timeline_is_far_from_the_limit() {
        const CPUS: u64 = 16;
        let slices = SLICES_MAX as u64 / CPUS;
        let tasks = (0..50).map(|pid| TaskName { name: format!("task/{pid}"), pid }).collect();
        let window = (0, slices * 100_000);
        let mut timeline = Timeline::new(window, CPUS as usize, tasks, SLICES_MAX);
        for i in 0..slices {
            let slice = Slice::of_cpu(i * 100_000, (i + 1) * 100_000, (i % 50) as u32);
            (0..CPUS as usize).for_each(|cpu| timeline.push_cpu(cpu, slice));
        }
        let timeline = timeline.finished();
        assert_eq!(timeline.slices(), SLICES_MAX);
        let drawing = Drawing { of: String::new(), shape: Shape::Timeline(timeline) };
        let chart = Chart {
            id: "timeline".to_owned(),
            title: String::new(),
            definition: String::new(),
            samples: String::new(),
            drawings: Vec::new(),
            table: None,
        };
        let pen = Pen::new().expect("the scripts are read");
        let svg = pen.draw(&chart, &drawing).expect("it is drawn");
        assert!(svg.contains("CPU 15"));
        assert!(pen.asked.get() < ASKED_MAX / 10, "{} questions", pen.asked.get());
    }

    #[test]
    fn a_script_without_end_is_ended() {
        let pen = Pen::new().expect("the scripts are read");
        pen.asked.set(ASKED_MAX - 10);
        let said = pen.context.with(|ctx| with_exception(&ctx, ctx.eval::<(), _>("for (;;) {}")));
        assert!(said.is_err_and(|why| why.contains("interrupted")));
    }
}
