//! Figures as pictures.

use std::path::Path;

use anyhow::{Result, anyhow};
use hamlyn_sim::reproduce::Plot;
use plotters::prelude::*;

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

fn draw(plot: &Plot, path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let points = || plot.curves.iter().flat_map(|curve| &curve.points);
    let right = points().fold(0.0_f64, |most, point| most.max(point.0));
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
        .build_cartesian_2d(0.0..right, 0.0..top * 1.05)?;
    chart
        .configure_mesh()
        .x_desc(plot.across)
        .y_desc(plot.unit)
        .x_label_formatter(&|across| format!("{across:.0}"))
        .draw()?;
    for (curve, &colour) in plot.curves.iter().zip(COLOURS.iter().cycle()) {
        let line = LineSeries::new(curve.points.iter().copied(), colour.stroke_width(2));
        chart
            .draw_series(line)?
            .label(&curve.label)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
    }
    // What the paper prints, as circles with the row that prints it.
    for anchor in &plot.anchors {
        // At the right edge it would be cut off.
        let across = if anchor.point.0 > 0.9 * right { -48 } else { 8 };
        let label = Text::new(anchor.id, (across, -6), ("sans-serif", 13).into_font());
        let mark =
            EmptyElement::at(anchor.point) + Circle::new((0, 0), 5, BLACK.stroke_width(2)) + label;
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
