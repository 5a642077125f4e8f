//! Charts as files: what is in an SVG, that a PNG shows it, and that both are the same each time.

use fairground_report::page::{
    Arrangement, Axis, BarSeries, Bars, Chart, Curve, Curves, Drawing, Marks, Page, Picture, Shape,
    Slice, TaskName, Timeline,
};

const BLUE: &str = "#0072B2";
const ORANGE: &str = "#E69F00";
const TEXT: &str = "#1c1f23";
/// Of tasks with these names in timelines; that of `mostly` is the first, too.
const COLOUR_OF_A: &str = "#ca5a89";
const COLOUR_OF_B: &str = "#f49286";

fn series(name: &str, values: &[Option<f64>], fair: Option<f64>) -> BarSeries {
    let marks = fair.map(|fair| Marks {
        name: "fair share".to_owned(),
        values: vec![Some(fair); values.len()],
    });
    BarSeries { marks, ..BarSeries::new(name, values.to_vec()) }
}

fn bars(categories: &[&str], arrangement: Arrangement) -> Shape {
    marked_bars(categories, arrangement, [Some(10.0), Some(20.0)])
}

/// With these marks across the bars of the two series.
fn marked_bars(categories: &[&str], arrangement: Arrangement, fair: [Option<f64>; 2]) -> Shape {
    let count = categories.len() as u32;
    let heights: Vec<Option<f64>> = (1..=count).map(|i| Some(f64::from(i) * 10.0)).collect();
    let mut gap = heights.clone();
    gap[0] = None;
    Shape::Bars(Bars {
        axis: Axis::linear("share of one CPU", "%"),
        categories: categories.iter().map(|name| (*name).to_owned()).collect(),
        series: vec![series("o1", &heights, fair[0]), series("cfs & <rfs>", &gap, fair[1])],
        arrangement,
    })
}

fn curves(names: &[&str]) -> Shape {
    let points =
        (0..50).map(|i| (1e3 * f64::from(1 << (i / 4)), f64::from(i) * 2.0)).collect::<Vec<_>>();
    Shape::Curves(Curves {
        x: Axis::log("time", "ns"),
        y: Axis::linear("slices no longer than that", "%"),
        series: names
            .iter()
            .map(|name| Curve { name: (*name).to_owned(), points: points.clone() })
            .collect(),
        are_steps: true,
    })
}

fn timeline(cpus: u64, slices: u64) -> Shape {
    const SLICE_NS: u64 = 1_000_000;
    let mut timeline =
        Timeline::new((0, slices * SLICE_NS), cpus as usize, names(["idle", "a", "b"]), 400_000);
    for i in 0..slices {
        let slice = Slice::of_cpu(i * SLICE_NS, (i + 1) * SLICE_NS, 1 + (i % 2) as u32);
        (0..cpus as usize).for_each(|cpu| timeline.push_cpu(cpu, slice));
    }
    Shape::Timeline(timeline.finished())
}

fn names(names: [&str; 3]) -> Vec<TaskName> {
    let name = |(pid, name): (usize, &str)| TaskName { name: name.to_owned(), pid: pid as u32 };
    names.into_iter().enumerate().map(name).collect()
}

fn chart(id: &str, drawings: Vec<(&str, Shape)>) -> Chart {
    Chart {
        id: id.to_owned(),
        title: "Who got the CPU".to_owned(),
        definition: "CPU time in % of one CPU.".to_owned(),
        samples: "o1: 3 tasks over 1.000 s.".to_owned(),
        drawings: drawings
            .into_iter()
            .map(|(of, shape)| Drawing { of: of.to_owned(), shape })
            .collect(),
        table: None,
    }
}

fn pictures(charts: Vec<Chart>) -> Vec<Picture> {
    let page = Page { command: "fairground run 'a & b'".to_owned(), charts, ..Page::default() };
    page.pictures().expect("they are drawn")
}

fn picture(shape: Shape) -> Picture {
    pictures(vec![chart("one", vec![("", shape)])]).remove(0)
}

/// Paths in the place of the axes that are filled with a colour: those of the legend are moved there.
fn filled(svg: &str, colour: &str) -> usize {
    let document = roxmltree::Document::parse(svg).expect("an SVG is XML");
    let is_bar = |node: &roxmltree::Node<'_, '_>| {
        node.has_tag_name("path")
            && node.attribute("fill") == Some(colour)
            && !node.has_attribute("transform")
    };
    let all: Vec<_> = document.descendants().collect();
    all.iter().filter(|node| is_bar(node)).count()
}

/// Widths and heights of the rectangles of a timeline in a task's colour: many are one path.
fn rectangles(svg: &str, colour: &str) -> Vec<(f64, f64)> {
    let document = roxmltree::Document::parse(svg).expect("an SVG is XML");
    let paths = document
        .descendants()
        .filter(|node| node.attribute("fill") == Some(colour) && !node.has_attribute("transform"));
    let numbers = |line: &str| -> Vec<f64> {
        line.split([' ', '-']).filter_map(|number| number.parse().ok()).collect()
    };
    let rectangle = |path: &str| {
        let lines: Vec<&str> = path.split(['l', 'L']).collect();
        (numbers(lines[1])[0], numbers(lines[2])[1])
    };
    paths
        .filter_map(|node| node.attribute("d"))
        .flat_map(|path| path.split_terminator('Z').map(rectangle).collect::<Vec<_>>())
        .collect()
}

fn texts(svg: &str) -> Vec<String> {
    let document = roxmltree::Document::parse(svg).expect("an SVG is XML");
    let all = document.descendants().filter(|node| node.has_tag_name("text"));
    all.filter_map(|node| node.text().map(str::to_owned)).collect()
}

/// Width, height and the pixels, red, green and blue.
fn decoded(png: &[u8]) -> (u32, u32, Vec<u8>) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().expect("a PNG");
    let mut pixels = vec![0; reader.output_buffer_size().expect("its size")];
    reader.next_frame(&mut pixels).expect("its pixels");
    (reader.info().width, reader.info().height, pixels)
}

fn pixels_of(pixels: &[u8], colour: [u8; 3]) -> usize {
    pixels.chunks_exact(3).filter(|pixel| **pixel == colour).count()
}

#[test]
fn a_bar_is_drawn_for_each_value_and_none_for_what_was_not_measured() {
    let Picture { svg, png, .. } = picture(bars(&["hog/0", "hog/1", "hog/2"], Arrangement::Beside));
    assert_eq!((filled(&svg, BLUE), filled(&svg, ORANGE)), (3, 2));
    let texts = texts(&svg);
    for text in
        ["Who got the CPU", "share of one CPU (%)", "hog/2", "cfs & <rfs>", "fair share", "30"]
    {
        assert!(texts.iter().any(|found| found == text), "{text} is not in {texts:?}");
    }
    let (width, height, pixels) = decoded(&png);
    assert_eq!((width, height), (1080, 720));
    // Decals lie on the bars; much of them stays as it is.
    assert!(pixels_of(&pixels, [0x00, 0x72, 0xb2]) > 5_000, "the bars are seen");
    assert!(pixels_of(&pixels, [255, 255, 255]) > pixels.len() / 3 / 3, "on white");
}

#[test]
fn each_bar_has_its_own_mark() {
    let svg = |fair| picture(marked_bars(&["hog/0", "hog/1"], Arrangement::Beside, fair)).svg;
    let marks = |svg: &str| {
        let document = roxmltree::Document::parse(svg).expect("an SVG is XML");
        let is_mark = |node: &roxmltree::Node<'_, '_>| {
            let placed = node.attribute("transform").is_some_and(|at| at.starts_with("matrix"));
            node.has_tag_name("path") && placed && node.attribute("fill") == Some(TEXT)
        };
        document.descendants().filter(is_mark).count()
    };
    assert_eq!(marks(&svg([None, None])), 0);
    assert_eq!(marks(&svg([Some(15.0), None])), 2, "for each bar of the first series");
    let both = svg([Some(15.0), Some(15.0)]);
    assert_eq!(marks(&both), 4, "and of the second, also where there is no bar");
    let texts = texts(&both);
    let entries = texts.iter().filter(|text| *text == "fair share").count();
    assert_eq!(entries, 1, "one entry in the legend: {texts:?}");
}

#[test]
fn text_is_painted_too() {
    // The letters of the title, and nothing else, are above the legend.
    let (width, _, pixels) = decoded(&picture(bars(&["a"], Arrangement::Beside)).png);
    let row = |y: usize| &pixels[y * width as usize * 3..][..width as usize * 3];
    let dark = (20..60).flat_map(|y| row(y).chunks_exact(3)).filter(|p| p[0] < 100).count();
    assert!(dark > 500, "{dark} dark pixels where the title is");
}

#[test]
fn long_names_stand_beside_bars_that_lie() {
    let names = [
        "published 2009, on SLE 11 with all features",
        "measured here under the same conditions",
        "cfs",
    ];
    let lying = picture(bars(&names, Arrangement::Exclusive));
    let texts = texts(&lying.svg).join(" ");
    assert!(
        names.iter().all(|name| texts.contains(&name[name.len() - 3..])),
        "no name is cut: {texts}"
    );
    let stacked = picture(bars(&["x", "y"], Arrangement::Stacked));
    assert_eq!((filled(&stacked.svg, BLUE), filled(&stacked.svg, ORANGE)), (2, 1));
}

#[test]
fn a_curve_is_drawn_for_each_series_with_its_dashes() {
    let Picture { svg, .. } = picture(curves(&["o1", "cfs", "rfs"]));
    let document = roxmltree::Document::parse(&svg).expect("an SVG is XML");
    let long = document.descendants().filter(|node| {
        node.attribute("fill") == Some("none") && node.attribute("d").is_some_and(|d| d.len() > 200)
    });
    let dashes: Vec<_> =
        long.map(|node| node.attribute("stroke-dasharray").unwrap_or("")).collect();
    assert_eq!(dashes.len(), 3);
    assert!(dashes[0].is_empty() && !dashes[1].is_empty() && dashes[1] != dashes[2], "{dashes:?}");
}

#[test]
fn a_timeline_shows_each_turn_until_they_are_too_many() {
    let few = picture(timeline(2, 20));
    // Tasks 1 and 2 have ten slices each on two CPUs, all equally long.
    let [a, b] = [COLOUR_OF_A, COLOUR_OF_B].map(|colour| rectangles(&few.svg, colour));
    let wide = |found: &[(f64, f64)]| found.iter().filter(|(width, _)| *width > 40.0).count();
    assert_eq!((wide(&a), wide(&b)), (20, 20));
    let width = |found: &[(f64, f64)]| found.iter().map(|(width, _)| width).sum::<f64>();
    assert!((width(&a) / width(&b) - 1.0).abs() < 0.02, "{} and {}", width(&a), width(&b));
    assert_eq!(decoded(&few.png).0, 2 * 1080);
    let many = picture(timeline(64, 5_000));
    assert!(many.svg.len() < 5_000_000, "{} bytes", many.svg.len());
    assert!(rectangles(&many.svg, COLOUR_OF_A).len() > 64 * 100, "it is not empty");
}

#[test]
fn turns_too_short_to_be_seen_have_the_colour_of_the_task_with_the_most_time() {
    const ROUND_NS: u64 = 20_000;
    // Task 1 comes first in each round, and task 2 has twenty times as much.
    let tasks = names(["idle", "seldom", "mostly"]);
    let mut drawn = Timeline::new((0, 50_000 * ROUND_NS), 1, tasks, 400_000);
    for begin in (0..50_000).map(|i| i * ROUND_NS) {
        drawn.push_cpu(0, Slice::of_cpu(begin, begin + 500, 1));
        drawn.push_cpu(0, Slice::of_cpu(begin + 500, begin + 10_500, 2));
    }
    let shape = Shape::Timeline(drawn.finished());
    let svg = picture(shape).svg;
    assert_eq!(rectangles(&svg, "#00a16d"), [], "in the colour of the task that has little");
    let mostly = rectangles(&svg, COLOUR_OF_A);
    assert!(mostly.len() > 100);
    // The CPU is busy for 10.5 of 20 µs, and so high it is.
    let highest = mostly.iter().map(|(_, height)| *height).fold(0.0, f64::max);
    let lane = rectangles(&picture(timeline(1, 20)).svg, COLOUR_OF_A)[0].1;
    assert!((highest / lane - 0.525).abs() < 0.05, "{highest} of {lane}");
}

#[test]
fn names_that_no_file_could_hold_are_drawn_all_the_same() {
    let odd = ["a\u{1b}[31m", "b\u{fffe}", "c\u{0}"];
    for shape in [bars(&odd, Arrangement::Beside), curves(&odd)] {
        let shown = picture(shape);
        assert!(texts(&shown.svg).iter().any(|text| text.contains("a\u{fffd}")), "{}", shown.svg);
    }
}

#[test]
fn the_same_charts_give_the_same_bytes() {
    let charts = || {
        vec![
            chart("a", vec![("", bars(&["x", "y"], Arrangement::Beside))]),
            chart("b", vec![("", curves(&["x", "y"]))]),
            chart("c", vec![("", timeline(4, 100))]),
        ]
    };
    assert_eq!(pictures(charts()), pictures(charts()));
}

#[test]
fn names_are_names_of_files_and_no_two_are_the_same() {
    let x = || bars(&["x"], Arrangement::Beside);
    let found = pictures(vec![
        chart(
            "figures-0",
            vec![("../Slices, µs?", x()), ("slices µs", x()), ("", x()), ("cfs@6.5", x())],
        ),
        chart("../../etc/passwd", vec![("ignored", x())]),
        chart(&"long".repeat(100), vec![("", x())]),
    ]);
    let names: Vec<&str> = found.iter().map(|picture| picture.name.as_str()).collect();
    assert_eq!(
        names[..5],
        [
            "figures-0-slices-s",
            "figures-0-slices-s-2",
            "figures-0-picture",
            "figures-0-cfs-6.5",
            "etc-passwd"
        ]
    );
    assert!(names[5].len() <= 200, "{}", names[5]);
}

#[test]
fn a_picture_says_what_it_shows() {
    let Picture { svg, png, .. } =
        pictures(vec![chart("one", vec![("run 1", curves(&["a"])), ("run 2", curves(&["b"]))])])
            .remove(1);
    let document = roxmltree::Document::parse(&svg).expect("an SVG is XML");
    let text = |tag: &str| {
        document.descendants().find(|node| node.has_tag_name(tag)).and_then(|node| node.text())
    };
    assert_eq!(text("title"), Some("Who got the CPU"));
    assert_eq!(
        text("desc"),
        Some(
            "run 2. CPU time in % of one CPU. o1: 3 tasks over 1.000 s.\nMade by: fairground run 'a & b'"
        )
    );
    let reader =
        png::Decoder::new(std::io::Cursor::new(png.as_slice())).read_info().expect("a PNG");
    let chunks: Vec<(String, String)> = reader
        .info()
        .utf8_text
        .iter()
        .map(|chunk| (chunk.keyword.clone(), chunk.get_text().expect("text")))
        .collect();
    assert_eq!(chunks[0], ("Title".to_owned(), "Who got the CPU".to_owned()));
    assert_eq!(chunks[2], ("Source".to_owned(), "fairground run 'a & b'".to_owned()));
}

/// Writes what the pictures of this file look like, for people: `PICTURES=/tmp/x cargo test … -- --ignored`.
#[test]
#[ignore = "writes files to look at"]
fn look_at_them() {
    let folder =
        std::path::PathBuf::from(std::env::var("PICTURES").expect("PICTURES names a folder"));
    let long = [
        "published 2009, on SLE 11 with all features",
        "measured here under the same conditions",
        "cfs",
    ];
    let found = pictures(vec![
        chart("bars", vec![("", bars(&["hog/0", "hog/1", "hog/2"], Arrangement::Beside))]),
        chart("lying", vec![("", bars(&long, Arrangement::Exclusive))]),
        chart("stacked", vec![("", bars(&long, Arrangement::Stacked))]),
        chart("curves", vec![("", curves(&["o1", "cfs", "rfs"]))]),
        chart("timeline", vec![("cfs", timeline(8, 400))]),
    ]);
    for picture in found {
        std::fs::write(folder.join(format!("{}.svg", picture.name)), picture.svg).expect("written");
        std::fs::write(folder.join(format!("{}.png", picture.name)), picture.png).expect("written");
    }
}
