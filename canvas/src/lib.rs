//! Software rasteriser for charts: rectangles, lines, discs, text, PNG output.
//!
//! Needs neither a display nor system fonts, so pictures are identical on every machine.

#![forbid(unsafe_code)]

use std::path::Path;

use ab_glyph::{Font as _, FontRef, ScaleFont as _};
use anyhow::Context;

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
        let font = FontRef::try_from_slice(epaint_default_fonts::UBUNTU_LIGHT).expect("the built-in font is valid");
        Self { width, height, pixels: vec![colour; width * height], font }
    }

    /// Blends a colour into a pixel with a coverage of 0 … 1; ignores pixels outside of the canvas.
    pub fn blend(&mut self, x: isize, y: isize, colour: Colour, coverage: f32) {
        let (Ok(x), Ok(y)) = (usize::try_from(x), usize::try_from(y)) else { return };
        if x < self.width && y < self.height {
            let pixel = &mut self.pixels[y * self.width + x];
            for (old, new) in pixel.iter_mut().zip(colour) {
                *old = (f32::from(*old) + (f32::from(new) - f32::from(*old)) * coverage.clamp(0.0, 1.0)).round() as u8;
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
            let share = ((x - from[0]) * along[0] + (y - from[1]) * along[1]) / square.max(f32::EPSILON);
            let share = share.clamp(0.0, 1.0);
            (x - from[0] - share * along[0]).hypot(y - from[1] - share * along[1])
        });
    }

    /// Fills a disc.
    pub fn disc(&mut self, centre: [f32; 2], radius: f32, colour: Colour) {
        self.fill_within([centre; 2], radius, colour, |[x, y]| (x - centre[0]).hypot(y - centre[1]));
    }

    /// Fills all points whose `distance` is at most `radius`, searching the bounding box of two corners.
    fn fill_within(&mut self, corners: [[f32; 2]; 2], radius: f32, colour: Colour, distance: impl Fn([f32; 2]) -> f32) {
        let range = |axis: usize| {
            let (low, high) = (corners[0][axis].min(corners[1][axis]), corners[0][axis].max(corners[1][axis]));
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
        let scaled = font.as_scaled(size);
        let mut glyphs = Vec::new();
        let (mut width, mut last) = (0.0, None);
        for id in text.chars().map(|character| font.glyph_id(character)) {
            width += last.map_or(0.0, |last| scaled.kern(last, id));
            glyphs.push((id, width));
            width += scaled.h_advance(id);
            last = Some(id);
        }
        let left = match align {
            Align::Left => x,
            Align::Centre => x - width / 2.0,
            Align::Right => x - width,
        };
        for (id, offset) in glyphs {
            let glyph = id.with_scale_and_position(size, ab_glyph::point(left + offset, y));
            let Some(outline) = font.outline_glyph(glyph) else { continue };
            let corner = outline.px_bounds().min;
            outline.draw(|column, row, coverage| {
                self.blend(corner.x as isize + column as isize, corner.y as isize + row as isize, colour, coverage);
            });
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
        let mut encoder = png::Encoder::new(&mut bytes, u32::try_from(self.width)?, u32::try_from(self.height)?);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::High);
        encoder.set_source_srgb(png::SrgbRenderingIntent::Perceptual);
        encoder.write_header()?.write_image_data(self.pixels.as_flattened())?;
        Ok(bytes)
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
            canvas.pixels.iter().map(|pixel| f32::from(pixel[0]) / 255.0).sum()
        };
        let disc = ink(&|canvas| canvas.disc([32.0, 32.0], 10.0, WHITE));
        assert!((disc / (std::f32::consts::PI * 100.0) - 1.0).abs() < 0.01, "{disc}");
        let line = ink(&|canvas| canvas.line([[10.0, 10.0], [40.0, 50.0]], 4.0, WHITE));
        // 50 by 4 pixels, with half a disc at each end.
        assert!((line / (200.0 + 4.0 * std::f32::consts::PI) - 1.0).abs() < 0.02, "{line}");
        assert_eq!(ink(&|canvas| canvas.disc([-40.0, 32.0], 10.0, WHITE)), 0.0);
    }

    #[test]
    fn text_is_aligned_to_its_anchor() {
        let ink = |align| {
            let mut canvas = Canvas::new(200, 40, BLACK);
            canvas.text("16 kHz", [100.0, 30.0], 20.0, align, WHITE);
            let mut columns = (0..200).filter(|x| (0..40).any(|y| canvas.pixels[y * 200 + x][0] > 64));
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
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height), (5, 3));
        assert_eq!(pixels, canvas.pixels.as_flattened());
    }
}
