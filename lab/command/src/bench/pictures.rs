//! The figures as pictures: time, rate and bandwidth against length, with what the machine itself
//! does beside them, dashed.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use plotters::prelude::*;

use super::large::Figures as Large;
use super::one_sided;
use super::report::Report;

/// Size of a picture, in pixels.
const SIZE: (u32, u32) = (1000, 600);
/// Ours, in the order of the curves; distinct to most eyes.
const OURS: [RGBColor; 7] = [
    RGBColor(200, 30, 30),
    RGBColor(0, 114, 178),
    RGBColor(0, 158, 115),
    RGBColor(230, 159, 0),
    RGBColor(70, 60, 150),
    RGBColor(204, 121, 167),
    RGBColor(150, 80, 30),
];
/// The machine's.
const MACHINE: [RGBColor; 3] = [
    RGBColor(0, 0, 0),
    RGBColor(110, 110, 110),
    RGBColor(170, 170, 170),
];

/// By length in bytes.
pub(super) struct Curve {
    pub(super) label: String,
    pub(super) is_machine: bool,
    pub(super) points: Vec<(usize, f64)>,
}

pub(super) struct Picture<'a> {
    pub(super) file: &'static str,
    pub(super) title: &'a str,
    pub(super) unit: &'static str,
    /// What the horizontal axis shows.
    pub(super) across: &'static str,
    /// Where no curve goes.
    pub(super) corner: SeriesLabelPosition,
    pub(super) curves: Vec<Curve>,
}

/// Draws what was measured into a directory.
///
/// # Errors
///
/// Nothing was measured that can be drawn; or the directory cannot be written.
pub(crate) fn write(report: &Report, directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory)
        .with_context(|| format!("making {}", directory.display()))?;
    let mut pictures = vec![one_way(report), rates(report)];
    pictures.extend([false, true].map(|fresh| bandwidth(report, fresh)));
    if let Some(figures) = &report.one_sided {
        pictures.push(one_sided::picture(figures));
        pictures.push(one_sided::picture_of_changes(figures));
    }
    pictures.retain(|picture| !picture.curves.is_empty());
    anyhow::ensure!(
        !pictures.is_empty(),
        "nothing that was measured has a picture: measure everything, or with --only, --rate, --large or \
         --one-sided"
    );
    for picture in pictures {
        let path = directory.join(picture.file);
        let machine = format!("{}, {}", super::report::processor(), report.state());
        draw(&picture, &machine, &path)
            .map_err(|error| anyhow!("drawing {}: {error}", path.display()))?;
    }
    Ok(())
}

fn one_way(report: &Report) -> Picture<'static> {
    let mut curves: Vec<Curve> = Vec::new();
    let mut add =
        |label: &str, is_machine, point| match curves.iter_mut().find(|curve| curve.label == label)
        {
            Some(curve) => curve.points.push(point),
            None => curves.push(Curve {
                label: label.to_owned(),
                is_machine,
                points: vec![point],
            }),
        };
    for (row, length_bytes, figures) in &report.one_way {
        add(
            &row.replace('_', " "),
            false,
            (*length_bytes, figures.one_way_ns),
        );
        let machine = match *row {
            "fast_mode" => "raw lines",
            "copied" => "raw, two copies",
            "direct" => "raw put",
            _ => continue,
        };
        add(machine, true, (*length_bytes, figures.raw_ns));
    }
    for (length_bytes, figures) in &report.request_reply {
        add(
            "request and reply",
            false,
            (*length_bytes, figures.one_way_ns),
        );
    }
    Picture {
        file: "one-way.svg",
        title: "One way in a ping-pong (less is better)",
        unit: "ns",
        across: "bytes in a message",
        corner: SeriesLabelPosition::UpperLeft,
        curves,
    }
}

fn rates(report: &Report) -> Picture<'static> {
    let curve = |label: &str, is_machine, rate: fn(&super::throughput::Figures) -> f64| Curve {
        label: label.to_owned(),
        is_machine,
        points: report
            .rates
            .iter()
            .filter(|figures| !is_machine || figures.fits_a_cell())
            .map(|figures| (figures.length_bytes, rate(figures) / 1e6))
            .collect(),
    };
    let mut curves = vec![
        curve("one call each", false, |figures| figures.each.median),
        curve("64 in a call", false, |figures| figures.many.median),
        curve("raw cells", true, |figures| figures.raw.median),
    ];
    curves.retain(|curve| !curve.points.is_empty());
    Picture {
        file: "rate.svg",
        title: "Messages a second, one way, fast mode (more is better)",
        unit: "million a second",
        across: "bytes in a message",
        corner: SeriesLabelPosition::UpperRight,
        curves,
    }
}

fn bandwidth(report: &Report, fresh: bool) -> Picture<'static> {
    let curve = |label: &str, is_machine, rate: fn(&Large) -> f64| Curve {
        label: label.to_owned(),
        is_machine,
        points: report
            .large
            .iter()
            .filter(|figures| figures.buffers.fresh == fresh)
            .map(|figures| (figures.buffers.size_bytes, rate(figures) / 1e9))
            .collect(),
    };
    let mut curves = vec![
        curve("copied", false, |figures| figures.copied),
        curve("direct", false, |figures| figures.direct),
        curve("raw, two copies", true, |figures| figures.raw_two_copy),
        curve("raw put", true, |figures| figures.raw_put),
        curve("memcpy in one process", true, |figures| figures.memcpy),
    ];
    curves.retain(|curve| !curve.points.is_empty());
    let (file, title) = if fresh {
        (
            "bandwidth-fresh.svg",
            "Bandwidth, fresh buffers (more is better)",
        )
    } else {
        (
            "bandwidth.svg",
            "Bandwidth, buffers used again (more is better)",
        )
    };
    Picture {
        file,
        title,
        unit: "GB/s",
        across: "bytes in a message",
        corner: SeriesLabelPosition::UpperRight,
        curves,
    }
}

/// Lengths stand side by side at equal distances: so zero has a place, too.
pub(super) fn draw(
    picture: &Picture<'_>,
    machine: &str,
    path: &Path,
) -> Result<(), Box<dyn std::error::Error>> {
    let points = || picture.curves.iter().flat_map(|curve| &curve.points);
    let mut lengths: Vec<usize> = points().map(|point| point.0).collect();
    lengths.sort_unstable();
    lengths.dedup();
    let top = points().fold(0.0_f64, |most, point| most.max(point.1));
    let right = lengths.len().saturating_sub(1).max(1) as f64;
    let across = |length_bytes: usize| {
        let place = lengths.iter().position(|&length| length == length_bytes);
        place.unwrap_or_default() as f64
    };
    let area = SVGBackend::new(path, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let title = format!("{}; {machine}", picture.title);
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 18))
        .margin(16)
        .x_label_area_size(44)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..right, 0.0..top * 1.05)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE)
        .y_label_formatter(&|figure| format!("{figure:.0}"))
        .x_labels(lengths.len())
        .x_desc(picture.across)
        .y_desc(picture.unit)
        .x_label_formatter(&|place| {
            let length = lengths.get(place.round() as usize);
            length.map_or(String::new(), |&length| size_name(length))
        })
        .draw()?;
    let (mut ours, mut machine) = (OURS.iter().cycle(), MACHINE.iter().cycle());
    for curve in &picture.curves {
        let colours = if curve.is_machine {
            &mut machine
        } else {
            &mut ours
        };
        let style = colours.next().copied().unwrap_or(BLACK).stroke_width(2);
        let line = curve
            .points
            .iter()
            .map(|&(length, figure)| (across(length), figure));
        if curve.is_machine {
            chart
                .draw_series(DashedLineSeries::new(line, 6, 4, style))?
                .label(&curve.label)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 8, y)], style));
        } else {
            chart
                .draw_series(LineSeries::new(line, style))?
                .label(&curve.label)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
        }
    }
    chart
        .configure_series_labels()
        .position(picture.corner.clone())
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    area.present()?;
    Ok(())
}

/// As people write it.
fn size_name(length_bytes: usize) -> String {
    match length_bytes {
        0..1024 => length_bytes.to_string(),
        1024..1_048_576 => format!("{} KiB", length_bytes >> 10),
        _ => format!("{} MiB", length_bytes >> 20),
    }
}
