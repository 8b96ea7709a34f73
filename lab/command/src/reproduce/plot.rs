//! Figures as pictures.

use std::path::Path;

use anyhow::{Result, anyhow};
use hamlyn_sim::reproduce::{BarChart, Plot};
use plotters::prelude::*;

/// From so many times as much on the axis is logarithmic.
const LOGARITHMIC_FROM: f64 = 1_000.0;

/// Size of a picture, in pixels.
const SIZE: (u32, u32) = (1000, 600);
/// One for each curve; distinct to most eyes.
const COLOURS: [RGBColor; 5] = [
    RGBColor(200, 30, 30),
    RGBColor(0, 114, 178),
    RGBColor(0, 158, 115),
    RGBColor(230, 159, 0),
    RGBColor(70, 60, 150),
];

/// Draws every plot into a directory.
pub(crate) fn write(plots: &[Plot], directory: &Path) -> Result<()> {
    for plot in plots {
        let path = directory.join(format!("{}.svg", plot.name));
        draw(plot, &path).map_err(|error| anyhow!("drawing {}: {error}", path.display()))?;
    }
    Ok(())
}

/// Draws every chart into a directory.
pub(crate) fn write_bars(charts: &[BarChart], directory: &Path) -> Result<()> {
    for chart in charts {
        let path = directory.join(format!("{}.svg", chart.name));
        draw_bars(chart, &path).map_err(|error| anyhow!("drawing {}: {error}", path.display()))?;
    }
    Ok(())
}

fn draw_bars(bars: &BarChart, path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let heights = bars.groups.iter().flat_map(|(_, heights)| heights);
    let top = heights.fold(1.0_f64, |most, &height| most.max(height));
    let right = bars.groups.len() as f64;
    let area = SVGBackend::new(path, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(&bars.title, ("sans-serif", 22))
        .margin(16)
        .x_label_area_size(44)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..right, 0.0..top * 1.1)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .disable_x_axis()
        .y_desc(bars.unit)
        .draw()?;
    // A group fills four fifths of its place.
    let width = 0.8 / bars.series.len() as f64;
    for (nth, (series, &colour)) in bars.series.iter().zip(COLOURS.iter().cycle()).enumerate() {
        let groups = bars.groups.iter().enumerate();
        let rectangles = groups.filter_map(|(place, (_, heights))| {
            let left = place as f64 + 0.1 + nth as f64 * width;
            let corners = [(left, 0.0), (left + width, *heights.get(nth)?)];
            Some(Rectangle::new(corners, colour.filled()))
        });
        chart
            .draw_series(rectangles)?
            .label(*series)
            .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 18, y + 5)], colour.filled()));
    }
    // Below the axis there is room for labels of the axis only: names stand above the bars' feet.
    let names = bars.groups.iter().enumerate().map(|(place, (name, _))| {
        EmptyElement::at((place as f64 + 0.12, 0.0))
            + Text::new(
                *name,
                (0, -18),
                ("sans-serif", 15).into_font().color(&WHITE),
            )
    });
    chart.draw_series(names)?;
    chart.draw_series(LineSeries::new([(0.0, 1.0), (right, 1.0)], BLACK))?;
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    area.present()?;
    Ok(())
}

fn draw(plot: &Plot, path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let points = || plot.curves.iter().flat_map(|curve| &curve.points);
    let right = points().fold(0.0_f64, |most, point| most.max(point.0));
    let least = points().fold(right, |least, point| least.min(point.0));
    // A logarithmic axis is one of logarithms whose labels are powers.
    let is_logarithmic = least > 0.0 && right >= LOGARITHMIC_FROM * least;
    let across = |x: f64| if is_logarithmic { x.log10() } else { x };
    let left = if is_logarithmic { across(least) } else { 0.0 };
    let right = across(right);
    let top = points().fold(0.0_f64, |most, point| most.max(point.1));
    let anchors = plot.anchors.iter().map(|anchor| anchor.point);
    let top = anchors.fold(top, |most, point| most.max(point.1));
    let area = SVGBackend::new(path, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(&plot.title, ("sans-serif", 22))
        .margin(16)
        .x_label_area_size(44)
        .y_label_area_size(60)
        .build_cartesian_2d(left..right, 0.0..top * 1.05)?;
    chart
        .configure_mesh()
        .x_desc(plot.across)
        .y_desc(plot.unit)
        .x_label_formatter(&|x| match is_logarithmic {
            true => format!("{:.0}", 10_f64.powf(*x)),
            false => format!("{x:.0}"),
        })
        .draw()?;
    for (curve, &colour) in plot.curves.iter().zip(COLOURS.iter().cycle()) {
        let points = curve.points.iter().map(|&(x, y)| (across(x), y));
        let line = LineSeries::new(points, colour.stroke_width(2));
        chart
            .draw_series(line)?
            .label(&curve.label)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
    }
    // What the paper prints, as circles with the row that prints it.
    for anchor in &plot.anchors {
        // At the right edge it would be cut off.
        let (x, y) = (across(anchor.point.0), anchor.point.1);
        let aside = if x > 0.9 * right { -48 } else { 8 };
        let label = Text::new(anchor.id, (aside, -6), ("sans-serif", 13).into_font());
        let mark = EmptyElement::at((x, y)) + Circle::new((0, 0), 5, BLACK.stroke_width(2)) + label;
        chart.draw_series(std::iter::once(mark))?;
    }
    if !plot.anchors.is_empty() {
        chart
            .draw_series(std::iter::empty::<Circle<(f64, f64), i32>>())?
            .label("printed in the paper")
            .legend(|(x, y)| Circle::new((x + 9, y), 5, BLACK.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    area.present()?;
    Ok(())
}
