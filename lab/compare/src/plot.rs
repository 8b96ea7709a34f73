//! Pictures: time against size, bandwidth against size, rate against senders. Both axes are
//! logarithmic; ours stands out.

use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;

use crate::catalogue::{self, LIBRARIES, Peer, Waits};
use crate::figure::{
    BANDWIDTH_SIZES_BYTES, Figure, RATE_SIZES_BYTES, SENDERS, TIME_SIZES_BYTES, size_name,
};
use crate::record::{Cell, Report};

const WIDTH: u32 = 1100;
const HEIGHT: u32 = 620;
/// Right of the plot, for the names.
const NAMES_WIDTH: u32 = 300;
const OURS: RGBColor = RGBColor(200, 30, 30);
const MACHINE: RGBColor = RGBColor(110, 110, 110);
/// One for each library in the catalogue's order, the same in all pictures; distinct to most eyes.
const OTHERS: [RGBColor; 11] = [
    RGBColor(0, 114, 178),
    RGBColor(86, 180, 233),
    RGBColor(70, 60, 150),
    RGBColor(160, 140, 220),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(0, 0, 0),
    RGBColor(150, 80, 30),
    RGBColor(150, 150, 40),
    RGBColor(0, 158, 115),
    RGBColor(120, 200, 120),
];
const _: () = assert!(OTHERS.len() + 2 == LIBRARIES.len());

/// One picture.
struct Picture {
    /// The peers that it shows, beside the machine itself.
    waits: Waits,
    file: &'static str,
    title: &'static str,
    across: &'static str,
    up: &'static str,
    /// Makes of a figure what is shown.
    scaled: fn(Figure, f64) -> f64,
    /// Where on the horizontal axis, what is written there, and the figure.
    points: Vec<(f64, String, Figure)>,
}

fn pictures() -> Vec<Picture> {
    let mut pictures = pictures_of(
        Waits::Polls,
        [
            "time.svg",
            "rate.svg",
            "bandwidth.svg",
            "bandwidth-fresh.svg",
            "senders.svg",
        ],
    );
    let sleeping = [
        "time-sleeping.svg",
        "rate-sleeping.svg",
        "bandwidth-sleeping.svg",
        "bandwidth-fresh-sleeping.svg",
        "senders-sleeping.svg",
    ];
    pictures.extend(pictures_of(Waits::Sleeps, sleeping));
    pictures
}

/// Messages a second, of a rate or of a bandwidth.
fn millions_a_second(figure: Figure, value: f64) -> f64 {
    match figure {
        Figure::Bandwidth { size_bytes, .. } => value / size_bytes as f64 / 1e6,
        _ => value / 1e6,
    }
}

fn pictures_of(waits: Waits, files: [&'static str; 5]) -> Vec<Picture> {
    let by_size = |figures: Vec<Figure>| -> Vec<(f64, String, Figure)> {
        let point = |figure: Figure| {
            let size_bytes = figure.size_bytes();
            (size_bytes as f64, size_name(size_bytes), figure)
        };
        figures.into_iter().map(point).collect()
    };
    let bandwidths =
        |fresh| BANDWIDTH_SIZES_BYTES.map(|size_bytes| Figure::Bandwidth { size_bytes, fresh });
    let rates = RATE_SIZES_BYTES.map(|size_bytes| Figure::Rate { size_bytes });
    let times = TIME_SIZES_BYTES.map(|size_bytes| Figure::OneWay { size_bytes });
    let [time, rate, bandwidth, bandwidth_fresh, senders] = files;
    let of_bandwidth = |file, title, fresh| Picture {
        waits,
        file,
        title,
        across: "bytes in a message",
        up: "GB/s",
        scaled: |_, value| value / 1e9,
        points: by_size(bandwidths(fresh).to_vec()),
    };
    vec![
        Picture {
            waits,
            file: time,
            title: "One-way time by size (less is better)",
            across: "bytes in a message",
            up: "µs",
            scaled: |_, value| value / 1e3,
            points: by_size(times.to_vec()),
        },
        Picture {
            waits,
            file: rate,
            title: "Messages by size (more is better)",
            across: "bytes in a message",
            up: "million messages a second",
            scaled: millions_a_second,
            points: by_size([&rates[..], &bandwidths(false)[..]].concat()),
        },
        of_bandwidth(
            bandwidth,
            "Bandwidth by size, buffers used again (more is better)",
            false,
        ),
        of_bandwidth(
            bandwidth_fresh,
            "Bandwidth by size, fresh buffers (more is better)",
            true,
        ),
        Picture {
            waits,
            file: senders,
            title: "16-byte messages by senders to one receiver, on two cores (more is better)",
            across: "senders",
            up: "million messages a second",
            scaled: millions_a_second,
            points: SENDERS
                .map(|senders| {
                    let figure = Figure::Senders { senders };
                    (senders as f64, senders.to_string(), figure)
                })
                .to_vec(),
        },
    ]
}

/// Writes all pictures that have something to show into a directory.
pub(crate) fn write(report: &Report, directory: &Path) -> Result<()> {
    for picture in pictures() {
        let lines = lines(report, &picture);
        // The machine alone says nothing.
        if lines.iter().all(|line| line.peer.is_machine()) {
            continue;
        }
        let path = directory.join(picture.file);
        let area = SVGBackend::new(&path, (WIDTH, HEIGHT)).into_drawing_area();
        draw(&area, &picture, &lines)
            .map_err(|error| anyhow!("drawing {}: {error}", path.display()))?;
    }
    Ok(())
}

struct Line<'a> {
    peer: &'a Peer,
    /// Which of its library's lines it is.
    variant: usize,
    points: Vec<(f64, f64)>,
}

/// What is measured, the best on the right first, so that names stand in the order of their lines.
fn lines<'a>(report: &'a Report, picture: &Picture) -> Vec<Line<'a>> {
    let mut lines: Vec<Line> = report
        .peers
        .iter()
        .filter(|peer| peer.waits == picture.waits || peer.is_machine())
        .map(|peer| Line {
            peer,
            variant: report
                .peers
                .iter()
                .filter(|other| other.library == peer.library)
                .position(|other| other.name == peer.name)
                .unwrap_or_default(),
            points: picture
                .points
                .iter()
                .filter_map(|&(x, _, figure)| match report.cell(peer, figure) {
                    Cell::Measured(summary) => Some((x, (picture.scaled)(figure, summary.median))),
                    _ => None,
                })
                .collect(),
        })
        .filter(|line| !line.points.is_empty())
        .collect();
    let last = |line: &Line| line.points.last().map_or(0.0, |point| point.1);
    lines.sort_by(|one, other| last(other).total_cmp(&last(one)));
    lines
}

type Failure = Box<dyn std::error::Error>;

fn draw(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    picture: &Picture,
    lines: &[Line],
) -> Result<(), Failure> {
    area.fill(&WHITE)?;
    let (left, right) = area.split_horizontally(WIDTH - NAMES_WIDTH);
    let values = || {
        lines
            .iter()
            .flat_map(|line| &line.points)
            .map(|point| point.1)
    };
    let least = values().fold(f64::INFINITY, f64::min) / 1.5;
    let most = values().fold(0.0, f64::max) * 1.5;
    let from = picture.points.first().map_or(1.0, |point| point.0) / 1.2;
    let to = picture.points.last().map_or(2.0, |point| point.0) * 1.2;
    let places: Vec<f64> = picture.points.iter().map(|point| point.0).collect();
    let mut chart = ChartBuilder::on(&left)
        .caption(picture.title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(48)
        .y_label_area_size(72)
        .build_cartesian_2d(
            (from..to).log_scale().with_key_points(places),
            (least..most)
                .log_scale()
                .with_key_points(decades(least, most)),
        )?;
    let name = |x: &f64| {
        picture
            .points
            .iter()
            .find(|point| (point.0 - x).abs() < 0.01 * x)
            .map_or(String::new(), |point| point.1.clone())
    };
    chart
        .configure_mesh()
        .x_desc(picture.across)
        .y_desc(picture.up)
        .x_label_formatter(&name)
        .y_label_formatter(&|y| short(*y))
        .label_style(("sans-serif", 15))
        .axis_desc_style(("sans-serif", 16))
        .light_line_style(WHITE.mix(0.0))
        .bold_line_style(BLACK.mix(0.12))
        .draw()?;
    // Ours last, so that it lies on top.
    let order = lines.iter().filter(|line| !line.peer.is_ours());
    for line in order.chain(lines.iter().filter(|line| line.peer.is_ours())) {
        let style = style_of(line.peer);
        let points = line.points.iter().copied();
        if line.peer.is_machine() {
            chart.draw_series(DashedLineSeries::new(points, 6, 4, style))?;
        } else {
            chart.draw_series(LineSeries::new(points, style))?;
        }
        let size = if is_reference(line.peer) { 5 } else { 4 };
        for point in &line.points {
            let at = chart.backend_coord(point);
            mark(area, at, line.variant, size, style.filled())?;
        }
    }
    for (row, line) in lines.iter().enumerate() {
        let y = 60 + row as i32 * 21;
        let style = style_of(line.peer);
        right.draw(&PathElement::new(vec![(4, y), (34, y)], style))?;
        mark(&right, (19, y), line.variant, 4, style.filled())?;
        let weight = if line.peer.is_ours() {
            FontStyle::Bold
        } else {
            FontStyle::Normal
        };
        let font = FontDesc::new(FontFamily::SansSerif, 15.0, weight);
        right.draw(&Text::new(line.peer.label, (42, y - 8), font))?;
    }
    area.present()?;
    Ok(())
}

/// Where lines are drawn across: 1, 2 and 5 of each power of ten.
fn decades(least: f64, most: f64) -> Vec<f64> {
    let first = least.log10().floor() as i32;
    let last = most.log10().ceil() as i32;
    (first..=last)
        .flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power)))
        .filter(|value| (least..=most).contains(value))
        .collect()
}

fn short(value: f64) -> String {
    if value >= 1.0 {
        format!("{value:.0}")
    } else {
        format!("{value}")
    }
}

/// What tells a library's lines apart: a disc, or a polygon of three corners and more.
fn mark(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    at: (i32, i32),
    variant: usize,
    size: i32,
    style: ShapeStyle,
) -> Result<(), Failure> {
    if variant == 0 {
        return Ok(area.draw(&Circle::new(at, size, style))?);
    }
    let corners = variant + 2;
    let radius = f64::from(size) * 1.4;
    let polygon = (0..corners).map(|corner| {
        let angle = std::f64::consts::TAU * corner as f64 / corners as f64;
        (
            at.0 + (radius * angle.sin()).round() as i32,
            at.1 - (radius * angle.cos()).round() as i32,
        )
    });
    Ok(area.draw(&Polygon::new(polygon.collect::<Vec<_>>(), style))?)
}

fn is_reference(peer: &Peer) -> bool {
    peer.name == peer.waits.reference()
}

/// Ours is red, and thick where it is what the others are compared with; each library has one
/// colour.
fn style_of(peer: &Peer) -> ShapeStyle {
    if peer.is_ours() {
        let is_reference = is_reference(peer);
        return OURS
            .mix(if is_reference { 1.0 } else { 0.55 })
            .stroke_width(if is_reference { 4 } else { 2 });
    }
    if peer.is_machine() {
        return MACHINE.stroke_width(1);
    }
    let index = LIBRARIES
        .iter()
        .filter(|library| ![catalogue::HAMLYN, catalogue::MACHINE].contains(&library.name))
        .position(|library| library.name == peer.library)
        .unwrap_or_default();
    OTHERS[index % OTHERS.len()].stroke_width(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_across() {
        assert_eq!(decades(0.9, 11.0), [1.0, 2.0, 5.0, 10.0]);
        assert_eq!(short(0.05), "0.05");
        assert_eq!(short(20.0), "20");
    }
}
