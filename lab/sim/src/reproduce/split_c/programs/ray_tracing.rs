//! A ray tracer (Table 2: p-ray). The objects of a scene are spread over the processors; each keeps
//! copies of those that its rays have met. Tiles of the image are dealt out in turn.
//!
//! An element is the test of a ray with an object or with the bound of a group of objects. A result
//! is the tiles that a processor holds.

use super::Size;
use super::node::Node;

/// Pixels of a tile's side.
const TILE: usize = 4;
/// Objects with a common bound, and groups of them.
const GROUP: usize = 8;
const GROUPS: usize = 8;
const OBJECTS: usize = GROUPS * GROUP;
/// Words of an object: its centre, its radius, its colour and how much it mirrors.
const OBJECT_WORDS: usize = 6;
/// Rays that go on from a mirror.
const DEPTH: u32 = 2;

type Vector = [f64; 3];

fn dot(one: Vector, other: Vector) -> f64 {
    one[0] * other[0] + one[1] * other[1] + one[2] * other[2]
}

/// One and so many times another.
fn plus(one: Vector, other: Vector, times: f64) -> Vector {
    [0, 1, 2].map(|axis| one[axis] + times * other[axis])
}

fn unit(vector: Vector) -> Vector {
    let length = dot(vector, vector).sqrt();
    vector.map(|part| part / length)
}

#[derive(Clone, Copy)]
struct Sphere {
    centre: Vector,
    radius: f64,
}

#[derive(Clone, Copy)]
struct Object {
    sphere: Sphere,
    brightness: f64,
    mirror: f64,
}

impl Object {
    /// An object of a tea pot: rings of its body, and at the end its spout and its handle.
    fn numbered(number: usize) -> Self {
        let (group, nth) = (number / GROUP, number % GROUP);
        let height = group as f64 / GROUPS as f64;
        let turn = std::f64::consts::TAU * nth as f64 / GROUP as f64;
        let along = nth as f64 / GROUP as f64;
        let (centre, radius) = if group + 2 < GROUPS {
            let wide = 0.3 + 1.1 * (std::f64::consts::PI * (0.15 + 0.75 * height)).sin();
            ([wide * turn.cos(), 1.6 * height, wide * turn.sin()], 0.28)
        } else if group + 1 < GROUPS {
            ([1.2 + 0.9 * along, 0.6 + 0.9 * along * along, 0.0], 0.18)
        } else {
            let bow = (std::f64::consts::PI * along).sin();
            ([-1.3 - 0.6 * bow, 0.4 + 0.9 * along, 0.0], 0.13)
        };
        Self {
            sphere: Sphere { centre, radius },
            brightness: 0.5 + 0.05 * (number % 7) as f64,
            mirror: 0.2 + 0.02 * (number % 5) as f64,
        }
    }

    fn words(self) -> [u64; OBJECT_WORDS] {
        let Sphere { centre, radius } = self.sphere;
        let [x, y, z] = centre;
        [x, y, z, radius, self.brightness, self.mirror].map(f64::to_bits)
    }

    fn of_words(words: &[u64]) -> Self {
        let number = |at: usize| f64::from_bits(words[at]);
        Self {
            sphere: Sphere {
                centre: [number(0), number(1), number(2)],
                radius: number(3),
            },
            brightness: number(4),
            mirror: number(5),
        }
    }
}

/// The bounds of all groups: every processor knows them.
fn bounds() -> Vec<Sphere> {
    let bound = |group: usize| {
        let objects = (group * GROUP..(group + 1) * GROUP).map(Object::numbered);
        let spheres: Vec<Sphere> = objects.map(|object| object.sphere).collect();
        let add = |sum, sphere: &Sphere| plus(sum, sphere.centre, 1.0 / GROUP as f64);
        let centre = spheres.iter().fold([0.0; 3], add);
        let reach = |sphere: &Sphere| {
            let away = plus(sphere.centre, centre, -1.0);
            dot(away, away).sqrt() + sphere.radius
        };
        let radius = spheres.iter().map(reach).fold(0.0, f64::max);
        Sphere { centre, radius }
    };
    (0..GROUPS).map(bound).collect()
}

/// How far along its way a ray meets a sphere, if it does.
fn meets(from: Vector, way: Vector, sphere: Sphere) -> Option<f64> {
    let away = plus(sphere.centre, from, -1.0);
    let along = dot(away, way);
    let root = along * along - dot(away, away) + sphere.radius * sphere.radius;
    if root < 0.0 {
        return None;
    }
    let root = root.sqrt();
    let near = along - root;
    let distance = if near > 1e-6 { near } else { along + root };
    (distance > 1e-6).then_some(distance)
}

/// Where objects come from, and what tests cost.
trait Scene {
    fn object(&mut self, number: usize) -> Object;
    fn tested(&mut self);
}

struct Tracer<S> {
    scene: S,
    bounds: Vec<Sphere>,
}

impl<S: Scene> Tracer<S> {
    fn nearest(&mut self, from: Vector, way: Vector) -> Option<(f64, Object)> {
        let mut found: Option<(f64, Object)> = None;
        for group in 0..GROUPS {
            self.scene.tested();
            if meets(from, way, self.bounds[group]).is_none() {
                continue;
            }
            for number in group * GROUP..(group + 1) * GROUP {
                let object = self.scene.object(number);
                self.scene.tested();
                if let Some(distance) = meets(from, way, object.sphere)
                    && found.is_none_or(|(nearest, _)| distance < nearest)
                {
                    found = Some((distance, object));
                }
            }
        }
        found
    }

    fn trace(&mut self, from: Vector, way: Vector, depth: u32) -> f64 {
        let Some((distance, object)) = self.nearest(from, way) else {
            return 0.4 + 0.2 * way[1];
        };
        let hit = plus(from, way, distance);
        let normal = unit(plus(hit, object.sphere.centre, -1.0));
        let light = unit([0.5, 0.7, -0.5]);
        let mut shade = dot(normal, light).max(0.0);
        if shade > 0.0 && self.nearest(hit, light).is_some() {
            shade = 0.0;
        }
        let own = object.brightness * (0.3 + 0.7 * shade);
        if depth == 0 {
            return own;
        }
        let on = unit(plus(way, normal, -2.0 * dot(way, normal)));
        (1.0 - object.mirror) * own + object.mirror * self.trace(hit, on, depth - 1)
    }

    /// The pixels of a tile, for an image of so many tiles across.
    fn tile(&mut self, tile: usize, across: usize) -> Vec<u64> {
        let side = (across * TILE) as f64;
        let (left, top) = (tile % across * TILE, tile / across * TILE);
        let pixels = (0..TILE * TILE).map(|place| (left + place % TILE, top + place / TILE));
        pixels
            .map(|(x, y)| {
                let across = (x as f64 - side / 2.0) / side * 1.2;
                let down = (y as f64 - side / 2.0) / side * 1.2;
                let way = unit([across, -down - 0.15, 1.0]);
                (self.trace([0.0, 1.6, -5.0], way, DEPTH) * 255.0) as u64
            })
            .collect()
    }
}

/// The scene as it is, at no cost.
struct Whole;

impl Scene for Whole {
    fn object(&mut self, number: usize) -> Object {
        Object::numbered(number)
    }

    fn tested(&mut self) {}
}

/// The scene as a processor sees it: objects of others are fetched once.
struct Spread<'n, 'e> {
    node: &'n mut Node<'e>,
    copies: Vec<Option<Object>>,
    landing: u32,
    tests: u64,
}

impl Spread<'_, '_> {
    /// Has the tests so far take their time.
    fn pay(&mut self) {
        let tests = std::mem::take(&mut self.tests);
        self.node.compute(tests);
    }
}

impl Scene for Spread<'_, '_> {
    fn object(&mut self, number: usize) -> Object {
        if let Some(object) = self.copies[number] {
            return object;
        }
        self.pay();
        let procs = self.node.procs();
        let at = (number / procs * OBJECT_WORDS) as u32;
        self.node
            .bulk_get(number % procs, at, self.landing, OBJECT_WORDS);
        self.node.sync();
        let object = Object::of_words(&self.node.words(self.landing, OBJECT_WORDS));
        self.copies[number] = Some(object);
        object
    }

    fn tested(&mut self) {
        self.tests += 1;
    }
}

/// Tiles across an image of which each processor has `size.elements` tiles; how many of them there
/// are is a square.
fn tiles_across(size: &Size, procs: usize) -> usize {
    (size.elements * procs).isqrt()
}

/// Whether it is the image that one processor makes of the scene.
pub(super) fn is_image(size: &Size, results: &[Vec<u64>]) -> bool {
    let procs = results.len();
    let across = tiles_across(size, procs);
    let mut tracer = Tracer {
        scene: Whole,
        bounds: bounds(),
    };
    let has_all = results
        .iter()
        .all(|result| result.len() == size.elements * TILE * TILE);
    has_all
        && (0..across * across).all(|tile| {
            let nth = tile / procs * TILE * TILE;
            let holder = (tile + 1) % procs;
            tracer.tile(tile, across) == results[holder][nth..nth + TILE * TILE]
        })
}

pub(super) fn p_ray(node: &mut Node<'_>, size: &Size) -> Vec<u64> {
    let (procs, rank) = (node.procs(), node.rank());
    let across = tiles_across(size, procs);
    for (nth, number) in (rank..OBJECTS).step_by(procs).enumerate() {
        let at = (nth * OBJECT_WORDS) as u32;
        node.set_words(at, &Object::numbered(number).words());
    }
    let landing = (OBJECTS.div_ceil(procs) * OBJECT_WORDS) as u32;
    let outbox = landing + OBJECT_WORDS as u32;
    let image = outbox + (size.elements * TILE * TILE) as u32;
    node.begin_timing();
    let mut tracer = Tracer {
        scene: Spread {
            node: &mut *node,
            copies: vec![None; OBJECTS],
            landing,
            tests: 0,
        },
        bounds: bounds(),
    };
    for nth in 0..size.elements {
        let pixels = tracer.tile(nth * procs + rank, across);
        tracer.scene.pay();
        let node = &mut *tracer.scene.node;
        // A tile's place in the image is on another processor than its work.
        let place = (nth * TILE * TILE) as u32;
        node.set_words(outbox + place, &pixels);
        node.bulk_store(
            (rank + 1) % procs,
            image + place,
            outbox + place,
            TILE * TILE,
        );
    }
    node.all_store_sync();
    node.end_timing();
    node.words(image, size.elements * TILE * TILE)
}
