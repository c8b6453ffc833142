//! Plots as SVG, by hand: a few lines or bars, and no more.

use std::fmt::Write as _;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 360.0;
/// Room for titles and labels: left, top, right, bottom.
const MARGIN: [f64; 4] = [64.0, 48.0, 16.0, 48.0];
/// Colours that people tell apart whose eyes tell few apart (Okabe and Ito).
const COLOURS: [&str; 4] = ["#0072b2", "#d55e00", "#009e73", "#999999"];
/// Ticks of an axis, about.
const MARKS: f64 = 5.0;

/// What is drawn of one name: points, by x.
pub(crate) struct Line {
    pub(crate) name: &'static str,
    pub(crate) points: Vec<(f64, f64)>,
}

/// A step of 1, 2 or 5 times a power of ten that cuts `most` into some marks.
fn step(most: f64) -> f64 {
    let rough = (most / MARKS).max(1e-9);
    let power = 10_f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|times| times * power);
    steps
        .into_iter()
        .find(|step| *step >= rough)
        .unwrap_or(rough)
}

fn label(value: f64) -> String {
    match value {
        small if small < 1.0 && small > 0.0 => format!("{small:.2}"),
        _ => format!("{value:.0}"),
    }
}

/// Text as it may stand in SVG.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

struct Canvas {
    svg: String,
    most: (f64, f64),
}

impl Canvas {
    fn new(title: &str, most: (f64, f64)) -> Canvas {
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
             font-size=\"12\">\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n"
        );
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"20\" font-size=\"15\">{}</text>",
            MARGIN[0],
            escaped(title)
        );
        Canvas {
            svg,
            most: (most.0.max(1e-9), most.1.max(1e-9)),
        }
    }

    fn x(&self, x: f64) -> f64 {
        MARGIN[0] + x / self.most.0 * (WIDTH - MARGIN[0] - MARGIN[2])
    }

    fn y(&self, y: f64) -> f64 {
        HEIGHT - MARGIN[3] - y / self.most.1 * (HEIGHT - MARGIN[1] - MARGIN[3])
    }

    fn text(&mut self, x: f64, y: f64, anchor: &str, text: &str) {
        let _ = writeln!(
            self.svg,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
            escaped(text)
        );
    }

    fn rule(&mut self, from: (f64, f64), to: (f64, f64), style: &str) {
        let _ = writeln!(
            self.svg,
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" {style}/>",
            from.0, from.1, to.0, to.1
        );
    }

    /// Marks along y, with thin lines.
    fn upright(&mut self, what: &str) {
        let step = step(self.most.1);
        let mut at = 0.0;
        while at <= self.most.1 * 1.001 {
            let (y, left, right) = (self.y(at), self.x(0.0), self.x(self.most.0));
            self.rule((left, y), (right, y), "stroke=\"#ddd\"");
            self.text(left - 6.0, y + 4.0, "end", &label(at));
            at += step;
        }
        self.text(MARGIN[0], MARGIN[1] - 10.0, "start", what);
    }

    fn legend(&mut self, names: &[&str]) {
        let mut x = WIDTH - MARGIN[2];
        for (name, colour) in names.iter().zip(COLOURS).rev() {
            x -= name.chars().count() as f64 * 6.6 + 30.0;
            let _ = writeln!(
                self.svg,
                "<rect x=\"{x:.1}\" y=\"29\" width=\"12\" height=\"12\" fill=\"{colour}\"/>"
            );
            self.text(x + 17.0, 39.0, "start", name);
        }
    }

    fn end(mut self) -> String {
        self.svg.push_str("</svg>\n");
        self.svg
    }
}

/// Lines over x. `target` is drawn as a broken line.
pub(crate) fn lines(
    title: &str,
    (x, y): (&str, &str),
    lines: &[Line],
    target: Option<f64>,
) -> String {
    let points = || lines.iter().flat_map(|line| &line.points);
    let most_x = points().map(|point| point.0).fold(0.0, f64::max);
    let most_y = points()
        .map(|point| point.1)
        .fold(target.unwrap_or(0.0), f64::max);
    let mut canvas = Canvas::new(title, (most_x, most_y * 1.05));
    canvas.upright(y);
    let step = step(most_x);
    let mut at = 0.0;
    while at <= most_x * 1.001 {
        let (x, y) = (canvas.x(at), canvas.y(0.0) + 18.0);
        canvas.text(x, y, "middle", &label(at));
        at += step;
    }
    canvas.text(WIDTH / 2.0, HEIGHT - 10.0, "middle", x);
    if let Some(target) = target {
        let (y, right) = (canvas.y(target), canvas.x(most_x));
        let style = "stroke=\"#333\" stroke-dasharray=\"6 4\"";
        canvas.rule((canvas.x(0.0), y), (right, y), style);
        canvas.text(right, y - 5.0, "end", "target");
    }
    for (line, colour) in lines.iter().zip(COLOURS) {
        let at: Vec<(f64, f64)> = line
            .points
            .iter()
            .map(|p| (canvas.x(p.0), canvas.y(p.1)))
            .collect();
        let path: Vec<String> = at.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(
            canvas.svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            path.join(" ")
        );
        for (x, y) in at {
            let _ = writeln!(
                canvas.svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\"/>"
            );
        }
    }
    canvas.legend(&lines.iter().map(|line| line.name).collect::<Vec<_>>());
    canvas.end()
}

/// Groups of bars: for each label one bar of each name.
pub(crate) fn bars(title: &str, y: &str, names: &[&str], groups: &[(String, Vec<f64>)]) -> String {
    let values = groups.iter().flat_map(|group| &group.1);
    let most = values.copied().fold(0.0, f64::max);
    let mut canvas = Canvas::new(title, (groups.len().max(1) as f64, most * 1.1));
    canvas.upright(y);
    for (n, (name, values)) in groups.iter().enumerate() {
        let (left, right) = (canvas.x(n as f64), canvas.x(n as f64 + 1.0));
        let width = (right - left) * 0.8 / names.len().max(1) as f64;
        for ((i, value), colour) in values.iter().enumerate().zip(COLOURS) {
            let x = left + (right - left) * 0.1 + width * i as f64;
            let (top, bottom) = (canvas.y(*value), canvas.y(0.0));
            let _ = writeln!(
                canvas.svg,
                "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>",
                width - 2.0,
                bottom - top
            );
            let text = crate::spread::digits(*value);
            canvas.text(x + width / 2.0, top - 4.0, "middle", &text);
        }
        let bottom = canvas.y(0.0);
        canvas.text((left + right) / 2.0, bottom + 18.0, "middle", name);
    }
    canvas.legend(names);
    canvas.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_numbers_and_few() {
        for most in [0.07, 1.0, 9.9, 12.0, 400.0, 1_024.0] {
            let marks = most / step(most);
            assert!((2.0..=5.01).contains(&marks), "{marks} marks up to {most}");
        }
        assert_eq!((step(1_000.0), step(12.0)), (200.0, 5.0));
    }

    #[test]
    fn a_higher_value_is_drawn_higher_and_names_cannot_break_the_picture() {
        let line = |name, y| Line {
            name,
            points: vec![(1.0, y), (2.0, y)],
        };
        let svg = lines(
            "a < b & c",
            ("x", "y"),
            &[line("low", 1.0), line("high", 9.0)],
            Some(5.0),
        );
        assert!(svg.contains("a &lt; b &amp; c") && svg.ends_with("</svg>\n"));
        let heights: Vec<f64> = svg
            .lines()
            .filter_map(|line| {
                line.strip_prefix("<circle")?
                    .split("cy=\"")
                    .nth(1)?
                    .split('"')
                    .next()?
                    .parse()
                    .ok()
            })
            .collect();
        assert_eq!(heights.len(), 4);
        assert!(heights[0] > heights[2], "{heights:?}");
        let bars = bars("t", "y", &["a", "b"], &[("x".to_owned(), vec![1.0, 2.0])]);
        assert_eq!(bars.matches("<rect").count(), 1 + 2 + 2);
    }
}
