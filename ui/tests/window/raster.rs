//! Software rasterizer for egui's triangles: snapshots need no GPU and are the same on all
//! machines.

use std::collections::HashMap;

use egui::epaint::{ImageDelta, Mesh, Primitive, Vertex};
use egui::{Context, FullOutput, ImageData, Pos2, Rect, TextureId, TexturesDelta, pos2};
use egui_kittest::TestRenderer;
use image::{Rgba, RgbaImage};

/// Premultiplied colour, components 0 … 255.
type Color = [f32; 4];

#[derive(Default)]
pub struct Raster {
    textures: HashMap<TextureId, Texture>,
}

struct Texture {
    size: [usize; 2],
    texels: Vec<Color>,
}

impl TestRenderer for Raster {
    fn handle_delta(&mut self, delta: &mut TexturesDelta) {
        for (id, images) in delta.set.drain() {
            for image in images {
                self.update(id, &image);
            }
        }
        for id in delta.free.drain() {
            self.textures.remove(&id);
        }
    }

    fn render(&mut self, ctx: &Context, output: &FullOutput) -> Result<RgbaImage, String> {
        let scale = ctx.pixels_per_point();
        let size = ctx.content_rect().size() * scale;
        let mut canvas = Canvas::new(size.x.round() as usize, size.y.round() as usize);
        for clipped in ctx.tessellate(output.shapes.clone(), scale) {
            let Primitive::Mesh(mesh) = &clipped.primitive else {
                return Err("only meshes can be drawn".into());
            };
            let texture = self
                .textures
                .get(&mesh.texture_id)
                .ok_or("a texture is not there")?;
            canvas.mesh(mesh, texture, clipped.clip_rect, scale);
        }
        Ok(canvas.image())
    }
}

impl Raster {
    fn update(&mut self, id: TextureId, delta: &ImageDelta) {
        let ImageData::Color(image) = &delta.image;
        let texels = image
            .pixels
            .iter()
            .map(|color| color.to_array().map(f32::from));
        let Some([left, top]) = delta.pos else {
            self.textures.insert(
                id,
                Texture {
                    size: image.size,
                    texels: texels.collect(),
                },
            );
            return;
        };
        let texture = self
            .textures
            .get_mut(&id)
            .expect("a part follows the whole");
        for (n, texel) in texels.enumerate() {
            let (x, y) = (left + n % image.size[0], top + n / image.size[0]);
            texture.texels[y * texture.size[0] + x] = texel;
        }
    }
}

impl Texture {
    /// Interpolates between the four nearest texels.
    fn sample(&self, uv: Pos2) -> Color {
        let [width, height] = self.size;
        let place =
            |part: f32, count: usize| (part * count as f32 - 0.5).clamp(0.0, (count - 1) as f32);
        let (x, y) = (place(uv.x, width), place(uv.y, height));
        let (left, top) = (x as usize, y as usize);
        let (right, bottom) = ((left + 1).min(width - 1), (top + 1).min(height - 1));
        let texel = |x: usize, y: usize| self.texels[y * width + x];
        let above = mix(texel(left, top), texel(right, top), x.fract());
        let below = mix(texel(left, bottom), texel(right, bottom), x.fract());
        mix(above, below, y.fract())
    }
}

fn mix(a: Color, b: Color, part: f32) -> Color {
    std::array::from_fn(|n| a[n] + part * (b[n] - a[n]))
}

struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<Color>,
}

impl Canvas {
    fn new(width: usize, height: usize) -> Self {
        Self {
            width,
            height,
            pixels: vec![[0.0, 0.0, 0.0, 255.0]; width * height],
        }
    }

    fn mesh(&mut self, mesh: &Mesh, texture: &Texture, clip: Rect, scale: f32) {
        let clip = [clip.min, clip.max]
            .map(|corner| pos2((corner.x * scale).round(), (corner.y * scale).round()));
        for corners in mesh.indices.as_chunks::<3>().0 {
            self.triangle(
                corners.map(|index| mesh.vertices[index as usize]),
                texture,
                clip,
                scale,
            );
        }
    }

    fn triangle(&mut self, corners: [Vertex; 3], texture: &Texture, clip: [Pos2; 2], scale: f32) {
        let [a, mut b, mut c] = corners;
        let mut area = cross(a.pos, b.pos, c.pos);
        if area == 0.0 {
            return;
        }
        if area < 0.0 {
            (b, c, area) = (c, b, -area);
        }
        let at = [a, b, c].map(|corner| pos2(corner.pos.x * scale, corner.pos.y * scale));
        let area = area * scale * scale;
        let least = |pick: fn(Pos2) -> f32| at.map(pick).into_iter().fold(f32::MAX, f32::min);
        let most = |pick: fn(Pos2) -> f32| at.map(pick).into_iter().fold(f32::MIN, f32::max);
        let left = least(|p| p.x).floor().max(clip[0].x).max(0.0) as usize;
        let top = least(|p| p.y).floor().max(clip[0].y).max(0.0) as usize;
        let right = most(|p| p.x)
            .ceil()
            .min(clip[1].x)
            .min(self.width as f32)
            .max(0.0) as usize;
        let bottom = most(|p| p.y)
            .ceil()
            .min(clip[1].y)
            .min(self.height as f32)
            .max(0.0) as usize;
        // Triangles share edges; a pixel on an edge belongs to one of them only.
        let owns = [owns(at[1], at[2]), owns(at[2], at[0]), owns(at[0], at[1])];
        for y in top..bottom {
            for x in left..right {
                let point = pos2(x as f32 + 0.5, y as f32 + 0.5);
                let parts = [
                    cross(at[1], at[2], point),
                    cross(at[2], at[0], point),
                    cross(at[0], at[1], point),
                ];
                if parts
                    .iter()
                    .zip(owns)
                    .any(|(part, owns)| *part < 0.0 || (*part == 0.0 && !owns))
                {
                    continue;
                }
                let [ka, kb, kc] = parts.map(|part| part / area);
                let uv = pos2(
                    ka * a.uv.x + kb * b.uv.x + kc * c.uv.x,
                    ka * a.uv.y + kb * b.uv.y + kc * c.uv.y,
                );
                let ink = [a, b, c].map(|corner| corner.color.to_array().map(f32::from));
                let texel = texture.sample(uv);
                let color: Color = std::array::from_fn(|n| {
                    (ka * ink[0][n] + kb * ink[1][n] + kc * ink[2][n]) * texel[n] / 255.0
                });
                let pixel = &mut self.pixels[y * self.width + x];
                let through = 1.0 - color[3] / 255.0;
                *pixel = std::array::from_fn(|n| color[n] + through * pixel[n]);
            }
        }
    }

    fn image(&self) -> RgbaImage {
        RgbaImage::from_fn(self.width as u32, self.height as u32, |x, y| {
            let color = self.pixels[y as usize * self.width + x as usize];
            Rgba(color.map(|value| value.round().clamp(0.0, 255.0) as u8))
        })
    }
}

/// Returns twice the area of a triangle; positive if it is clockwise on the screen.
fn cross(a: Pos2, b: Pos2, c: Pos2) -> f32 {
    (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x)
}

/// The top-left rule.
fn owns(from: Pos2, to: Pos2) -> bool {
    to.y < from.y || (to.y == from.y && to.x > from.x)
}
