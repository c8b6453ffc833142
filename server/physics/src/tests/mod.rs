//! Random scenes, and the law that a mirror's history never affects its answers.

mod reference;
mod rules;

use std::collections::BTreeMap;

use super::*;

const WALLS: Layers = Layers::bit(0);
const BODIES: Layers = Layers::bit(1);
const GHOSTS: Layers = Layers::bit(2);

/// A generator for scenes: xorshift64*, seeded from the test's case number.
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32) as u32
    }
    fn range(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * (self.next() >> 8) as f32 / (1 << 24) as f32
    }
    fn below(&mut self, end: usize) -> usize {
        self.next() as usize % end
    }
    fn point(&mut self, reach: f32) -> Vec2 {
        Vec2::new(self.range(-reach, reach), self.range(-reach, reach))
    }
    fn shape(&mut self) -> Shape {
        let radius = self.range(0.2, 2.0);
        match self.below(4) {
            0 => Shape::Ball { radius },
            1 => Shape::Box {
                half: Vec2::new(radius, self.range(0.2, 4.0)),
            },
            2 => Shape::Capsule {
                a: self.point(3.0),
                b: self.point(3.0),
                radius,
            },
            _ => Shape::Segment {
                a: self.point(5.0),
                b: self.point(5.0),
            },
        }
    }
    fn placed(&mut self, layers: Layers) -> PlacedShape {
        let shape = if self.below(2) == 0 {
            Shape::Ball {
                radius: self.range(0.2, 2.0),
            }
        } else {
            self.shape()
        };
        PlacedShape {
            shape,
            at: self.point(30.0),
            angle: self.range(-4.0, 4.0),
            layers,
        }
    }
    fn scene(&mut self, walls: usize, bodies: usize) -> Model {
        Model {
            walls: (0..walls).map(|_| self.placed(WALLS)).collect(),
            bodies: (0..bodies)
                .map(|_| {
                    let layers = if self.below(4) == 0 { GHOSTS } else { BODIES };
                    (self.next(), self.placed(layers))
                })
                .collect(),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct PlacedShape {
    shape: Shape,
    at: Vec2,
    angle: f32,
    layers: Layers,
}

#[derive(Clone, Debug)]
struct Model {
    walls: Vec<PlacedShape>,
    bodies: BTreeMap<u32, PlacedShape>,
}

impl Model {
    fn mirror(&self) -> Mirror<u32> {
        let mut mirror = Mirror::new();
        for wall in &self.walls {
            mirror
                .add_wall(wall.shape, wall.at, wall.angle, wall.layers)
                .unwrap();
        }
        fill(&mut mirror, self.bodies.iter());
        mirror
    }
    fn solids(&self) -> impl Iterator<Item = (Option<u32>, &PlacedShape)> {
        let walls = self.walls.iter().map(|wall| (None, wall));
        walls.chain(self.bodies.iter().map(|(id, body)| (Some(*id), body)))
    }
}

fn fill<'a>(mirror: &mut Mirror<u32>, bodies: impl Iterator<Item = (&'a u32, &'a PlacedShape)>) {
    let mut fill = mirror.refill();
    for (id, body) in bodies {
        fill.put(*id, body.shape, body.at, body.angle, body.layers)
            .unwrap();
    }
}

/// The answers of one mirror to all queries of this file, as one comparable value.
#[derive(Debug, PartialEq)]
struct Answers {
    area: Vec<Hit<u32>>,
    visible: Vec<Hit<u32>>,
    ray: Option<Impact<u32>>,
    ray_all: Vec<Impact<u32>>,
    cast: Option<Impact<u32>>,
}

fn ask(mirror: &mut Mirror<u32>, dice: &mut Dice) -> Answers {
    let (center, aim) = (dice.point(30.0), dice.point(30.0));
    let (radius, shape, angle) = (dice.range(1.0, 20.0), dice.shape(), dice.range(-3.0, 3.0));
    Answers {
        area: mirror.area(center, radius, BODIES).unwrap().to_vec(),
        visible: mirror
            .area_visible(center, radius, BODIES, WALLS | GHOSTS)
            .unwrap()
            .to_vec(),
        ray: mirror.ray(center, aim, 50.0, BODIES | WALLS).unwrap(),
        ray_all: mirror
            .ray_all(center, aim, 50.0, BODIES | WALLS)
            .unwrap()
            .to_vec(),
        cast: mirror
            .cast(shape, center, angle, aim - center, BODIES | WALLS)
            .unwrap(),
    }
}

#[test]
fn mirrors_with_different_histories_give_equal_answers() {
    for seed in 0..150 {
        let mut dice = Dice::new(seed);
        let model = dice.scene(10, 60);
        let mut fresh = model.mirror();

        let mut old = Mirror::new();
        for wall in &model.walls {
            old.add_wall(wall.shape, wall.at, wall.angle, wall.layers)
                .unwrap();
        }
        for _ in 0..dice.below(5) {
            let bodies = dice.below(120);
            fill(&mut old, dice.scene(0, bodies).bodies.iter());
            ask(&mut old, &mut dice);
        }
        let mut order: Vec<_> = model.bodies.iter().collect();
        for last in (1..order.len()).rev() {
            order.swap(last, dice.below(last + 1));
        }
        fill(&mut old, order.into_iter());

        for question in 0..20 {
            let seed_of_question = seed * 100 + question;
            let expected = ask(&mut fresh, &mut Dice::new(seed_of_question));
            let got = ask(&mut old, &mut Dice::new(seed_of_question));
            assert_eq!(got, expected, "seed {seed}, question {question}");
            assert!(
                got.area.is_sorted_by(|a, b| a.id < b.id),
                "seed {seed}: {:?}",
                got.area
            );
            assert!(got.ray_all.is_sorted(), "seed {seed}: {:?}", got.ray_all);
            assert_eq!(
                got.ray,
                got.ray_all.first().copied(),
                "seed {seed}, question {question}"
            );
        }
    }
}
