//! [`Gpu`]: draws a batch onto the screen, with one texture, one mesh, and two materials: one without texture and
//! blending.
//!
//! Blending is premultiplied (T. Porter and T. Duff, "Compositing Digital Images", 1984): paint covers with its alpha,
//! and light has an alpha of zero and adds up; so both share draw calls, in painter's order.

use macroquad::miniquad::{BlendFactor, BlendState, BlendValue, Equation, PipelineParams};
use macroquad::models::{Mesh, Vertex, draw_mesh};
use macroquad::prelude::{
    Color, FilterMode, Material, MaterialParams, ShaderSource, Texture2D, clear_background,
    gl_use_material, load_material, vec2, vec3, vec4,
};

use super::atlas::Atlas;
use super::batch::{Batch, Corner};
use crate::scene::palette::Tint;

/// The maximum number of quads in a draw call: indices have 16 bits.
pub(crate) const QUADS_PER_CALL: usize = 16_000;
/// The maximum number of vertices and of indices in a draw call, which the window needs when it opens.
pub(crate) const CALL_CAPACITY: (usize, usize) = (QUADS_PER_CALL * 4 + 1, QUADS_PER_CALL * 6 + 1);

/// Corners are already in pixels, so there is no model matrix.
const VERTEX: &str = "#version 100
attribute vec3 position;
attribute vec2 texcoord;
attribute vec4 color0;
varying lowp vec4 color;
varying highp vec2 uv;
uniform mat4 Projection;
void main() {
    gl_Position = Projection * vec4(position, 1);
    color = color0 / 255.0;
    uv = texcoord;
}";
const FRAGMENT: &str = "#version 100
varying lowp vec4 color;
varying highp vec2 uv;
uniform sampler2D Texture;
void main() {
    gl_FragColor = color * texture2D(Texture, uv);
}";

const PLAIN: &str = "#version 100
varying lowp vec4 color;
void main() {
    gl_FragColor = color;
}";

#[derive(Debug, thiserror::Error)]
#[error("the graphics driver refuses the window's shader ({0}); use --terminal")]
pub(crate) struct GpuError(String);

pub(crate) struct Gpu {
    material: Material,
    plain: Material,
    mesh: Mesh,
    indices: Vec<u16>,
}

impl Gpu {
    pub(crate) fn new() -> Result<Gpu, GpuError> {
        let over = BlendFactor::OneMinusValue(BlendValue::SourceAlpha);
        let over = BlendState::new(Equation::Add, BlendFactor::One, over);
        let mut indices = Vec::with_capacity(QUADS_PER_CALL * 6);
        for first in (0..QUADS_PER_CALL as u16).map(|n| n * 4) {
            indices.extend([0, 1, 2, 0, 2, 3].map(|corner| first + corner));
        }
        Ok(Gpu {
            material: material(FRAGMENT, Some(over))?,
            plain: material(PLAIN, None)?,
            mesh: Mesh {
                vertices: Vec::with_capacity(QUADS_PER_CALL * 4),
                indices: Vec::with_capacity(QUADS_PER_CALL * 6),
                texture: None,
            },
            indices,
        })
    }

    pub(crate) fn load(&mut self, atlas: &Atlas) {
        let side = atlas.side as u16;
        let texture = Texture2D::from_rgba8(side, side, &atlas.bytes);
        texture.set_filter(FilterMode::Linear);
        self.mesh.texture = Some(texture);
    }

    pub(crate) fn draw(&mut self, batch: &Batch, background: Tint) {
        let [r, g, b] = background.rgb;
        clear_background(Color::from_rgba(r, g, b, 255));
        let (plain, rest) = batch.corners.split_at(batch.plain);
        for (material, corners) in [(&self.plain, plain), (&self.material, rest)] {
            gl_use_material(material);
            for corners in corners.chunks(QUADS_PER_CALL * 4) {
                let mesh = &mut self.mesh;
                mesh.vertices.clear();
                mesh.vertices.extend(corners.iter().map(vertex));
                mesh.indices.clear();
                let indices = self.indices.iter().take(corners.len() / 4 * 6);
                mesh.indices.extend(indices);
                draw_mesh(mesh);
            }
        }
    }
}

fn material(fragment: &str, blend: Option<BlendState>) -> Result<Material, GpuError> {
    let source = ShaderSource::Glsl {
        vertex: VERTEX,
        fragment,
    };
    let params = MaterialParams {
        pipeline_params: PipelineParams {
            color_blend: blend,
            ..PipelineParams::default()
        },
        ..MaterialParams::default()
    };
    load_material(source, params).map_err(|error| GpuError(error.to_string()))
}

fn vertex(corner: &Corner) -> Vertex {
    Vertex {
        position: vec3(corner.at.x, corner.at.y, 0.0),
        uv: vec2(corner.uv.x, corner.uv.y),
        color: corner.color,
        normal: vec4(0.0, 0.0, 0.0, 0.0),
    }
}
