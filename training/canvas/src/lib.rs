//! Software rasteriser for charts: rectangles, lines, discs, text, spectrograms, PNG output.
//!
//! Needs neither a display nor system fonts, so pictures are identical on every machine.

#![forbid(unsafe_code)]

pub mod axis;
mod mel;
pub mod spectrogram;

use std::path::Path;

use ab_glyph_rasterizer::{Point, Rasterizer, point};
use anyhow::Context;
use skrifa::instance::{LocationRef, Size};
use skrifa::outline::{DrawSettings, OutlinePen};
use skrifa::{FontRef, MetadataProvider as _};

/// 8-bit sRGB: red, green, blue.
pub type Colour = [u8; 3];

/// Horizontal alignment of a text relative to its anchor point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// The text starts at the anchor.
    Left,
    /// The text is centred on the anchor.
    Centre,
    /// The text ends at the anchor.
    Right,
}

/// Pixel buffer; the origin is the top left corner, and y points down.
pub struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<Colour>,
    font: FontRef<'static>,
}

impl Canvas {
    /// Creates a canvas filled with one colour.
    ///
    /// # Panics
    /// Panics if the built-in font cannot be parsed, which a test rules out.
    #[must_use]
    pub fn new(width: usize, height: usize, colour: Colour) -> Self {
        let font =
            FontRef::new(epaint_default_fonts::UBUNTU_LIGHT).expect("the built-in font is valid");
        Self {
            width,
            height,
            pixels: vec![colour; width * height],
            font,
        }
    }

    /// Blends a colour into a pixel with a coverage of 0 … 1; ignores pixels outside of the canvas.
    pub fn blend(&mut self, x: isize, y: isize, colour: Colour, coverage: f32) {
        let (Ok(x), Ok(y)) = (usize::try_from(x), usize::try_from(y)) else {
            return;
        };
        if x < self.width && y < self.height {
            let pixel = &mut self.pixels[y * self.width + x];
            for (old, new) in pixel.iter_mut().zip(colour) {
                *old = (f32::from(*old)
                    + (f32::from(new) - f32::from(*old)) * coverage.clamp(0.0, 1.0))
                .round() as u8;
            }
        }
    }

    /// Fills a rectangle, given by its top left corner and its size in pixels.
    pub fn fill(&mut self, [x, y]: [isize; 2], [width, height]: [isize; 2], colour: Colour) {
        for row in y..y + height {
            for column in x..x + width {
                self.blend(column, row, colour, 1.0);
            }
        }
    }

    /// Draws a vertical line one pixel wide from `top` to `bottom`, antialiased at its ends.
    pub fn vertical_line(&mut self, x: isize, top: f32, bottom: f32, colour: Colour) {
        for y in top.floor() as isize..=bottom.floor() as isize {
            let coverage = bottom.min(y as f32 + 1.0) - top.max(y as f32);
            self.blend(x, y, colour, coverage);
        }
    }

    /// Draws a line with round ends; `width` is in pixels.
    pub fn line(&mut self, [from, to]: [[f32; 2]; 2], width: f32, colour: Colour) {
        let along = [to[0] - from[0], to[1] - from[1]];
        let square = along[0].powi(2) + along[1].powi(2);
        self.fill_within([from, to], width / 2.0, colour, |[x, y]| {
            // Distance to the nearest point of the line.
            let share =
                ((x - from[0]) * along[0] + (y - from[1]) * along[1]) / square.max(f32::EPSILON);
            let share = share.clamp(0.0, 1.0);
            (x - from[0] - share * along[0]).hypot(y - from[1] - share * along[1])
        });
    }

    /// Fills a disc.
    pub fn disc(&mut self, centre: [f32; 2], radius: f32, colour: Colour) {
        self.fill_within([centre; 2], radius, colour, |[x, y]| {
            (x - centre[0]).hypot(y - centre[1])
        });
    }

    /// Fills all points whose `distance` is at most `radius`, searching the bounding box of two
    /// corners.
    fn fill_within(
        &mut self,
        corners: [[f32; 2]; 2],
        radius: f32,
        colour: Colour,
        distance: impl Fn([f32; 2]) -> f32,
    ) {
        let range = |axis: usize| {
            let (low, high) = (
                corners[0][axis].min(corners[1][axis]),
                corners[0][axis].max(corners[1][axis]),
            );
            (low - radius - 1.0).floor() as isize..=(high + radius + 1.0).ceil() as isize
        };
        for y in range(1) {
            for x in range(0) {
                let coverage = radius + 0.5 - distance([x as f32 + 0.5, y as f32 + 0.5]);
                self.blend(x, y, colour, coverage);
            }
        }
    }

    /// Draws one line of text with its baseline at `y`; `size` is the font height in pixels.
    pub fn text(&mut self, text: &str, [x, y]: [f32; 2], size: f32, align: Align, colour: Colour) {
        let font = self.font.clone();
        let (charmap, outlines) = (font.charmap(), font.outline_glyphs());
        let design = font.metrics(Size::unscaled(), LocationRef::default());
        let em =
            Size::new(size * f32::from(design.units_per_em) / (design.ascent - design.descent));
        let metrics = font.glyph_metrics(em, LocationRef::default());
        let mut glyphs = Vec::new();
        let mut width = 0.0;
        for id in text
            .chars()
            .map(|character| charmap.map(character).unwrap_or_default())
        {
            glyphs.push((id, width));
            width += metrics.advance_width(id).unwrap_or_default();
        }
        let left = match align {
            Align::Left => x,
            Align::Centre => x - width / 2.0,
            Align::Right => x - width,
        };
        for (id, offset) in glyphs {
            let (Some(outline), Some(bounds)) = (outlines.get(id), metrics.bounds(id)) else {
                continue;
            };
            let origin = point(left + offset, y);
            let corner = [
                (origin.x + bounds.x_min).floor(),
                (origin.y - bounds.y_max).floor(),
            ];
            let opposite = [
                (origin.x + bounds.x_max).ceil(),
                (origin.y - bounds.y_min).ceil(),
            ];
            let size = [0, 1].map(|axis| (opposite[axis] - corner[axis]) as usize + 1);
            let mut pen = GlyphPen::new(size, point(origin.x - corner[0], origin.y - corner[1]));
            if outline
                .draw(DrawSettings::unhinted(em, LocationRef::default()), &mut pen)
                .is_ok()
            {
                pen.rasteriser.for_each_pixel_2d(|column, row, coverage| {
                    self.blend(
                        corner[0] as isize + column as isize,
                        corner[1] as isize + row as isize,
                        colour,
                        coverage,
                    );
                });
            }
        }
    }

    /// Writes a PNG file.
    ///
    /// # Errors
    /// Returns an error with the path if the file cannot be written.
    pub fn write_png(&self, path: &Path) -> anyhow::Result<()> {
        self.encode()
            .and_then(|bytes| Ok(std::fs::write(path, bytes)?))
            .with_context(|| format!("{}: cannot be written", path.display()))
    }

    fn encode(&self) -> anyhow::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(
            &mut bytes,
            u32::try_from(self.width)?,
            u32::try_from(self.height)?,
        );
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::High);
        encoder.set_source_srgb(png::SrgbRenderingIntent::Perceptual);
        encoder
            .write_header()?
            .write_image_data(self.pixels.as_flattened())?;
        Ok(bytes)
    }
}

/// Draws an outline, whose y points up, into a box of pixels.
struct GlyphPen {
    rasteriser: Rasterizer,
    /// Origin of the glyph in the box.
    origin: Point,
    start: Point,
    last: Point,
}

impl GlyphPen {
    fn new([width, height]: [usize; 2], origin: Point) -> Self {
        Self {
            rasteriser: Rasterizer::new(width, height),
            origin,
            start: origin,
            last: origin,
        }
    }

    fn at(&self, x: f32, y: f32) -> Point {
        point(self.origin.x + x, self.origin.y - y)
    }

    /// Moves to a point; returns the last one and this one.
    fn advance(&mut self, x: f32, y: f32) -> [Point; 2] {
        let to = self.at(x, y);
        [std::mem::replace(&mut self.last, to), to]
    }
}

impl OutlinePen for GlyphPen {
    fn move_to(&mut self, x: f32, y: f32) {
        let [_, to] = self.advance(x, y);
        self.start = to;
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let [from, to] = self.advance(x, y);
        self.rasteriser.draw_line(from, to);
    }

    fn quad_to(&mut self, control_x: f32, control_y: f32, x: f32, y: f32) {
        let control = self.at(control_x, control_y);
        let [from, to] = self.advance(x, y);
        self.rasteriser.draw_quad(from, control, to);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let controls = [self.at(x1, y1), self.at(x2, y2)];
        let [from, to] = self.advance(x, y);
        self.rasteriser
            .draw_cubic(from, controls[0], controls[1], to);
    }

    fn close(&mut self) {
        self.rasteriser.draw_line(self.last, self.start);
        self.last = self.start;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLACK: Colour = [0; 3];
    const WHITE: Colour = [255; 3];

    #[test]
    fn vertical_lines_are_antialiased_at_their_ends() {
        let mut canvas = Canvas::new(3, 4, BLACK);
        canvas.vertical_line(1, 0.5, 2.25, WHITE);
        let column: Vec<u8> = (0..4).map(|y| canvas.pixels[y * 3 + 1][0]).collect();
        assert_eq!(column, [128, 255, 64, 0]);
        canvas.fill([-5, -5], [100, 6], WHITE);
        assert_eq!(canvas.pixels[..4], [WHITE, WHITE, WHITE, BLACK]);
    }

    #[test]
    fn lines_and_discs_cover_their_areas() {
        let ink = |draw: &dyn Fn(&mut Canvas)| -> f32 {
            let mut canvas = Canvas::new(64, 64, BLACK);
            draw(&mut canvas);
            canvas
                .pixels
                .iter()
                .map(|pixel| f32::from(pixel[0]) / 255.0)
                .sum()
        };
        let disc = ink(&|canvas| canvas.disc([32.0, 32.0], 10.0, WHITE));
        assert!(
            (disc / (std::f32::consts::PI * 100.0) - 1.0).abs() < 0.01,
            "{disc}"
        );
        let line = ink(&|canvas| canvas.line([[10.0, 10.0], [40.0, 50.0]], 4.0, WHITE));
        // 50 by 4 pixels, with half a disc at each end.
        assert!(
            (line / (200.0 + 4.0 * std::f32::consts::PI) - 1.0).abs() < 0.02,
            "{line}"
        );
        assert_eq!(ink(&|canvas| canvas.disc([-40.0, 32.0], 10.0, WHITE)), 0.0);
    }

    #[test]
    fn text_is_aligned_to_its_anchor() {
        let ink = |align| {
            let mut canvas = Canvas::new(200, 40, BLACK);
            canvas.text("16 kHz", [100.0, 30.0], 20.0, align, WHITE);
            let mut columns =
                (0..200).filter(|x| (0..40).any(|y| canvas.pixels[y * 200 + x][0] > 64));
            let first = columns.next().unwrap();
            (first, columns.next_back().unwrap())
        };
        let (left, centre, right) = (ink(Align::Left), ink(Align::Centre), ink(Align::Right));
        assert!(left.0 >= 100 && right.1 <= 100);
        assert!(centre.0.abs_diff(200 - centre.1) <= 3, "{centre:?}");
    }

    #[test]
    fn a_decoded_png_equals_the_canvas() {
        let mut canvas = Canvas::new(5, 3, [1, 2, 3]);
        canvas.fill([1, 1], [2, 1], WHITE);
        let bytes = canvas.encode().unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes))
            .read_info()
            .unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height), (5, 3));
        assert_eq!(pixels, canvas.pixels.as_flattened());
    }
}
